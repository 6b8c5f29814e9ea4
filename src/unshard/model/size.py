"""Amounts, for people."""

from __future__ import annotations


def size_text(count: float) -> str:
    """Bytes, in powers of 1000."""
    for unit in ("B", "kB", "MB", "GB"):
        if count < 1000 or unit == "GB":
            return f"{count:,.0f} {unit}" if unit == "B" else f"{count:,.1f} {unit}"
        count /= 1000
    raise AssertionError("GB is the last unit")
