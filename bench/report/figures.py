"""Figures of several runs of one bench: what each run gave, the median, and the spread."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from statistics import median
from typing import Any

RUNS, MEDIAN, SPREAD = "runs", "median", "spread_percent"


def combine(results: Sequence[Any]) -> Any:
    """Return the results of several runs as one: each number as `{"runs", "median", "spread_percent"}`.

    The results have the same form. The spread is the largest value less the smallest, as a percentage of the median.
    Lists and texts are kept for each run.
    """
    first = results[0]
    if isinstance(first, dict):
        return {key: combine([result[key] for result in results]) for key in first}
    if isinstance(first, int | float) and not isinstance(first, bool):
        middle = median(results)
        spread = 100 * (max(results) - min(results)) / middle if middle else 0.0
        return {RUNS: list(results), MEDIAN: round(middle, 3), SPREAD: round(spread, 1)}
    return {RUNS: list(results)}


def is_figure(value: Any) -> bool:
    """Return whether a value is a number that `combine` made."""
    return isinstance(value, dict) and {RUNS, MEDIAN, SPREAD} == value.keys()


def figures(result: Any, prefix: str = "") -> Iterator[tuple[str, dict[str, Any]]]:
    """Yield (`bulk.rows_per_s`, figure) for every number in a combined result."""
    if is_figure(result):
        yield prefix.removesuffix("."), result
    elif isinstance(result, dict):
        for key, value in result.items():
            yield from figures(value, f"{prefix}{key}.")
