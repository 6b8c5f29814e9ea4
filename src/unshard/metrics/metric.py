"""What a metric is, and where it is shown: plain values, of which `registry` holds one a metric."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

Kind = Literal["gauge", "counter", "histogram"]
Severity = Literal["emergency", "critical", "warning"]


@dataclass(frozen=True, slots=True)
class PanelQuery:
    """A PromQL expression and the legend of its series; `$task`, `$source`, `$worker` are the dashboard's choices."""

    expr: str
    legend: str


@dataclass(frozen=True, slots=True)
class Panel:
    """A graph of the dashboard, under the heading `row`. `unit` is Grafana's name of one (`s`, `decbytes`, `ops`)."""

    row: str
    title: str
    queries: tuple[PanelQuery, ...]
    unit: str = "short"


@dataclass(frozen=True, slots=True)
class Alert:
    """A rule: `expr` true for that long (`10m`) is an alarm. `summary` and `action` are what the one on call reads."""

    name: str
    expr: str
    lasting: str
    severity: Severity
    summary: str
    action: str


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric. `unit` is for people (`seconds`, `bytes`, `rows`); `buckets` are a histogram's upper bounds.

    Where the name begins with `dm_`, `dumpling_` or `lightning_` it is DM's and means the same there; labels that DM
    hasn't are said in `help`.
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
    """A panel of (expression, legend) pairs."""
    return Panel(row, title, tuple(PanelQuery(*query) for query in queries), unit)
