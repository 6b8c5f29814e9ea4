"""A bar chart of a bench's ratios, as SVG text without any library."""

from __future__ import annotations

from collections.abc import Iterator
from html import escape
from pathlib import Path
from typing import Any

_WIDTH, _ROW, _LEFT, _TOP = 640, 28, 200, 50
_BAR_WIDTH = _WIDTH - _LEFT - 80


def ratios(result: dict[str, Any], prefix: str = "") -> Iterator[tuple[str, float]]:
    """(`bulk.x_native`, value) of every figure whose key begins with `x_`."""
    for key, value in result.items():
        if isinstance(value, dict):
            yield from ratios(value, f"{prefix}{key}.")
        elif key.startswith("x_"):
            yield prefix + key, float(value)


def bars(title: str, result: dict[str, Any], path: str) -> None:
    """Write the chart: one bar a ratio, and a line where ours is as fast as theirs."""
    found = list(ratios(result))
    most = max([1.0, *(value for _, value in found)])
    height = _TOP + _ROW * len(found) + 20
    even = _LEFT + _BAR_WIDTH / most
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{_WIDTH}" height="{height}" font-family="sans-serif">',
        f'<text x="10" y="28" font-size="18">{escape(title)}: ours over theirs, more is better</text>',
    ]
    for number, (name, value) in enumerate(found):
        y = _TOP + _ROW * number
        length = _BAR_WIDTH * value / most
        parts += [
            f'<text x="10" y="{y + 15}" font-size="13">{escape(name)}</text>',
            f'<rect x="{_LEFT}" y="{y}" width="{length:.1f}" height="20" fill="#3366aa"/>',
            f'<text x="{_LEFT + length + 6:.1f}" y="{y + 15}" font-size="13">{value:.2f}</text>',
        ]
    parts += [f'<line x1="{even:.1f}" x2="{even:.1f}" y1="{_TOP - 6}" y2="{height - 14}" stroke="#aa3333"/>', "</svg>"]
    Path(path).write_text("\n".join(parts), encoding="utf-8")
