"""The Grafana dashboard (`examples/monitoring/dashboard.json`), made from the metrics."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from unshard.metrics.metric import Panel
from unshard.metrics.registry import METRICS, ROWS

_SOURCE = {"type": "prometheus", "uid": "${datasource}"}
_WIDTH, _HEIGHT, _ACROSS = 8, 8, 24
_OPEN = ROWS[0]
"""The heading whose panels are open at first; the others are folded until someone opens them."""


def dashboard() -> dict[str, Any]:
    """Return the dashboard for import into Grafana (schema 39: version 10 and later)."""
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
    """Return the panels of one row of the dashboard, in the order of the metrics."""
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
