"""The plots of a report, as SVG text that stands in the page itself."""

from __future__ import annotations

import io
from collections import Counter
from collections.abc import Mapping, Sequence
from itertools import pairwise
from typing import Any

from matplotlib import rc_context
from matplotlib.figure import Figure

from bench.report.figures import MEDIAN, RUNS

_WIDE, _BAR, _AROUND = 8.0, 0.32, 1.1
_FASTER, _SLOWER = "#3366aa", "#bb6633"


def ratios(found: Sequence[tuple[str, Mapping[str, Any]]]) -> str:
    """Draw each ratio's median as a bar, and its smallest and largest run as a line."""
    names, values = [name for name, _ in found], [float(figure[MEDIAN]) for _, figure in found]
    below = [value - min(figure[RUNS]) for value, (_, figure) in zip(values, found, strict=True)]
    above = [max(figure[RUNS]) - value for value, (_, figure) in zip(values, found, strict=True)]
    figure = Figure((_WIDE, _AROUND + _BAR * len(found)), layout="constrained")
    axes = figure.add_subplot()
    colours = [_FASTER if value >= 1 else _SLOWER for value in values]
    drawn = axes.barh(names, values, color=colours, xerr=(below, above), ecolor="#222222", capsize=3)
    axes.bar_label(drawn, fmt="{:.2f}", padding=6)
    axes.invert_yaxis()
    axes.set_xscale("log")
    axes.set_xlim(min(0.5, *values) / 1.2, max(2.0, *values) * 2)
    axes.axvline(1.0, color="black", linewidth=0.8)
    axes.set_title("Ours over theirs: more is better")
    return _svg(figure)


def histogram(runs: Sequence[Sequence[tuple[int, int]]]) -> str:
    """Draw the delays of all runs together. A bin is its lower bound in milliseconds and its number of rows."""
    counts: Counter[int] = Counter()
    for run in runs:
        counts.update(dict(run))
    bounds = sorted(counts)
    width = min((after - before for before, after in pairwise(bounds)), default=20)
    figure = Figure((_WIDE, 3.0), layout="constrained")
    axes = figure.add_subplot()
    axes.bar(bounds, [counts[bound] for bound in bounds], width=width, align="edge", color=_FASTER)
    axes.set_xlabel("milliseconds from the commit until the row is visible")
    axes.set_ylabel("rows")
    return _svg(figure)


def lines(seconds: Sequence[float], series: Mapping[str, Sequence[float]], unit: str) -> str:
    """Draw values over time, one line a name."""
    figure = Figure((_WIDE, 3.0), layout="constrained")
    axes = figure.add_subplot()
    for name, values in series.items():
        axes.plot(seconds, values, label=name)
    axes.set_ylim(bottom=0)
    axes.set_xlabel("seconds")
    axes.set_ylabel(unit)
    axes.legend()
    return _svg(figure)


def _svg(figure: Figure) -> str:
    for axes in figure.axes:
        axes.spines[["top", "right"]].set_visible(False)
    out = io.StringIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "unshard"}):
        figure.savefig(out, format="svg", metadata={"Date": None})
    text = out.getvalue()
    return text[text.index("<svg") :]
