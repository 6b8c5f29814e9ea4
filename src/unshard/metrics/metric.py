"""The definition of a metric and of its graphs and alerts, as plain values. `registry` has one for each metric."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["gauge", "counter", "histogram"]
Severity = Literal["emergency", "critical", "warning"]


@dataclass(frozen=True, slots=True)
class PanelQuery:
    """A PromQL expression and the legend of its series.

    `$task`, `$source`, `$worker` are the choices made in the dashboard.
    """

    expr: str
    legend: str


@dataclass(frozen=True, slots=True)
class Panel:
    """A graph of the dashboard, under the heading `row`.

    `unit` is Grafana's name of a unit (`s`, `decbytes`, `ops`).
    """

    row: str
    title: str
    queries: tuple[PanelQuery, ...]
    unit: str = "short"


@dataclass(frozen=True, slots=True)
class Alert:
    """An alert rule: it fires when `expr` has been true for the time `lasting` (`10m`).

    `summary` and `action` are for the person on call.
    """

    name: str
    expr: str
    lasting: str
    severity: Severity
    summary: str
    action: str


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric. `unit` is for people (`seconds`, `bytes`, `rows`); `buckets` are a histogram's upper bounds.

    A metric whose name begins with `dm_`, `dumpling_` or `lightning_` is DM's and means the same as there. `help` names
    the labels that DM lacks.
    """

    name: str
    kind: Kind
    labels: tuple[str, ...]
    unit: str
    help: str
    buckets: tuple[float, ...] = ()
    panels: tuple[Panel, ...] = ()
    alerts: tuple[Alert, ...] = ()


def graph(row: str, title: str, unit: str, *queries: tuple[str, str]) -> Panel:
    """Return a panel of (expression, legend) pairs."""
    return Panel(row, title, tuple(PanelQuery(*query) for query in queries), unit)
