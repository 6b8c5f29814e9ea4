"""Prometheus' alert rules, made of the registry: `examples/monitoring/alerts.yml`."""

from __future__ import annotations

from typing import Any

from unshard.metrics.metric import Alert
from unshard.metrics.registry import METRICS, PROCESS_ALERTS


def alerts() -> list[Alert]:
    return [*PROCESS_ALERTS, *(alert for metric in METRICS.values() for alert in metric.alerts)]


def rules() -> dict[str, Any]:
    """One group with a rule an alert, as a rule file has it."""
    return {"groups": [{"name": "unshard", "rules": [_rule(alert) for alert in alerts()]}]}


def _rule(alert: Alert) -> dict[str, Any]:
    return {
        "alert": alert.name,
        "expr": alert.expr,
        "for": alert.lasting,
        "labels": {"severity": alert.severity},
        "annotations": {"summary": alert.summary, "action": alert.action},
    }
