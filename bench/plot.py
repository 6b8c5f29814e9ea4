"""Saved results as a bar chart: our rate over that of each tool beside us, on a scale of tenfold steps."""

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
    """(`bulk.x_native`, value) of every figure whose key begins with `x_`."""
    for key, value in result.items():
        if isinstance(value, dict):
            yield from ratios(value, f"{prefix}{key}.")
        elif key.startswith("x_"):
            yield prefix + key, float(value)


def saved(file: Path) -> dict[str, Any]:
    """What `python -m bench` printed into a file: of `all` one object a bench, of one bench its result alone.

    The latter goes by the file's name. Raises ValueError where there is no ratio.
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
    """One chart of all ratios, as `into` with `.png` and with `.svg`. A line stands where both are as fast."""
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
