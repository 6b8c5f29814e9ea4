"""Numbers in JSON text that the JSON of MySQL and TiDB does not keep: it has 64-bit integers and DOUBLE only."""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation

MAY_LOSE = r"[0-9][0-9.]{15}|[0-9][eE]"
"""A pattern, for RE2 and for servers, that every text with such a number matches: DOUBLE keeps 15 digits."""

_TOKEN = re.compile(r'"(?:[^"\\]|\\.)*"|(-?\d+)(\.\d+)?([eE][+-]?\d+)?', re.DOTALL)
_LOWEST, _BEYOND = -(1 << 63), 1 << 64
_MOST_DIGITS = 400
"""More digits than any text has that is exactly a DOUBLE of up to 1e308 in whole numbers."""


def loses_digits(text: str) -> bool:
    """Return whether a JSON document has a number that a 64-bit integer or a DOUBLE holds only rounded."""
    return any(_is_rounded(token) for token in _TOKEN.finditer(text) if token[1])


def _is_rounded(token: re.Match[str]) -> bool:
    whole = not token[2] and not token[3]
    if len(token[0]) > _MOST_DIGITS:
        return True
    if whole and _LOWEST <= int(token[1]) < _BEYOND:
        return False
    try:
        return Decimal(repr(float(token[0]))) != Decimal(token[0])
    except (InvalidOperation, OverflowError):
        return True
