"""Draws saved results as a bar chart: our rate relative to that of each other tool, on a logarithmic scale."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

from matplotlib import rc_context
from matplotlib.figure import Figure

from bench import BENCHES

_INCHES_WIDE, _INCHES_A_BAR, _INCHES_AROUND = 8.0, 0.32, 1.1
_FASTER, _SLOWER = "#3366aa", "#bb6633"


def ratios(result: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, float]]:
    """Yield (`bulk.x_native`, value) for every figure whose key begins with `x_`."""
    for key, value in result.items():
        if isinstance(value, dict):
            yield from ratios(value, f"{prefix}{key}.")
        elif key.startswith("x_"):
            yield prefix + key, float(value)


def saved(file: Path) -> dict[str, Any]:
    """Return the results that `python -m bench` printed to a file: for `all` one object for each bench, for one bench
    its result.

    The latter is named after the file. Raises ValueError if there is no ratio.
    """
    found: dict[str, Any] = {}
    rest = file.read_text().lstrip()
    while rest:
        printed, end = json.JSONDecoder().raw_decode(rest)
        found |= printed if set(printed) <= set(BENCHES) else {file.stem: printed}
        rest = rest[end:].lstrip()
    if not any(ratios(found)):
        raise ValueError(f"{file} has no ratio")
    return found


def draw(files: Iterable[Path], into: Path) -> tuple[Path, Path]:
    """Draw one chart of all ratios, as `into` with `.png` and with `.svg`. A line marks equal speed."""
    found = [pair for file in files for pair in ratios(saved(file))]
    names, values = [name for name, _ in found], [value for _, value in found]
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": "unshard"}):
        figure = Figure((_INCHES_WIDE, _INCHES_AROUND + _INCHES_A_BAR * len(found)), layout="constrained")
        axes = figure.add_subplot()
        colours = [_FASTER if value >= 1 else _SLOWER for value in values]
        drawn = axes.barh(names, values, color=colours)
        axes.bar_label(drawn, fmt="{:.2f}", padding=3)
        axes.invert_yaxis()
        axes.set_xscale("log")
        axes.set_xlim(min(0.5, *values) / 1.2, max(2.0, *values) * 2)
        axes.axvline(1.0, color="black", linewidth=0.8)
        axes.set_title("Ours over theirs: more is better")
        axes.spines[["top", "right"]].set_visible(False)
        png, svg = into.with_suffix(".png"), into.with_suffix(".svg")
        figure.savefig(png, dpi=120)
        figure.savefig(svg, metadata={"Date": None})
    return png, svg
