"""The Grafana dashboard, made of the registry's panels: `examples/monitoring/dashboard.json`."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from unshard.metrics.metric import Alert, Panel
from unshard.metrics.registry import METRICS, PROCESS_ALERTS, ROWS

_SOURCE = {"type": "prometheus", "uid": "${datasource}"}
_WIDTH, _HEIGHT, _ACROSS = 8, 8, 24
_OPEN = ROWS[0]
"""The heading whose panels are there at once; others are folded until someone looks."""


def dashboard() -> dict[str, Any]:
    """What Grafana imports (schema 39: version 10 and later)."""
    return {
        "title": "Unshard",
        "uid": "unshard",
        "tags": ["unshard"],
        "schemaVersion": 39,
        "editable": True,
        "refresh": "10s",
        "time": {"from": "now-1h", "to": "now"},
        "timezone": "browser",
        "templating": {
            "list": [
                {"name": "datasource", "type": "datasource", "query": "prometheus"},
                _choice("task", "dm_worker_task_state", "task"),
                _choice("source", "unshard_relay_stage", "source_id"),
                _choice("worker", "dm_worker_task_state", "worker"),
            ]
        },
        "panels": list(_panels()),
    }


def panels_of(row: str) -> list[Panel]:
    return [panel for metric in METRICS.values() for panel in metric.panels if panel.row == row]


def _panels() -> Iterator[dict[str, Any]]:
    number, y = 1, 0
    for row in ROWS:
        heading: dict[str, Any] = {
            "id": number,
            "type": "row",
            "title": row,
            "collapsed": row != _OPEN,
            "gridPos": {"x": 0, "y": y, "w": _ACROSS, "h": 1},
            "panels": [],
        }
        graphs = []
        for place, panel in enumerate(panels_of(row)):
            down, across = divmod(place * _WIDTH, _ACROSS)
            position = {"x": across, "y": y + 1 + down * _HEIGHT, "w": _WIDTH, "h": _HEIGHT}
            graphs.append(_graph(panel, number + 1 + place, position))
        number += 1 + len(graphs)
        y += 1 + _HEIGHT * -(-len(graphs) * _WIDTH // _ACROSS)
        if row == _OPEN:
            yield heading
            yield from graphs
        else:
            yield {**heading, "panels": graphs}


def _graph(panel: Panel, number: int, position: dict[str, int]) -> dict[str, Any]:
    return {
        "id": number,
        "type": "timeseries",
        "title": panel.title,
        "description": _description(panel),
        "datasource": _SOURCE,
        "gridPos": position,
        "fieldConfig": {"defaults": {"unit": panel.unit, "min": 0}, "overrides": []},
        "options": {"legend": {"displayMode": "list", "placement": "bottom"}, "tooltip": {"mode": "multi"}},
        "targets": [
            {"refId": chr(ord("A") + place), "expr": query.expr, "legendFormat": query.legend, "datasource": _SOURCE}
            for place, query in enumerate(panel.queries)
        ],
    }


def _description(panel: Panel) -> str:
    return next(metric.help for metric in METRICS.values() if panel in metric.panels)


def _choice(name: str, metric: str, label: str) -> dict[str, Any]:
    return {
        "name": name,
        "type": "query",
        "datasource": _SOURCE,
        "query": f"label_values({metric}, {label})",
        "refresh": 2,
        "multi": True,
        "includeAll": True,
        "allValue": ".*",
        "current": {"text": "All", "value": "$__all"},
    }


# Prometheus' alert rules, made of the registry: `examples/monitoring/alerts.yml`.


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
