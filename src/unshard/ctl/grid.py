"""What every table on a terminal looks like."""

from __future__ import annotations

from rich.table import Table


def grid(*head: str) -> Table:
    return Table(*head, box=None, pad_edge=False, header_style="bold")
