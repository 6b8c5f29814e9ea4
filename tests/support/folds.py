"""Reads which characters are equal under a collation from a server's WEIGHT_STRING. `folds.json` was made by it."""

from __future__ import annotations

from typing import Any

from unshard.mysql.connection import rows
from unshard.transform.expressions.texts import is_plain

_PLANE = 0x10000
_DIGITS = "(SELECT 0 d" + "".join(f" UNION ALL SELECT {digit}" for digit in range(1, 16)) + ")"
_SURROGATES = range(0xD800, 0xE000)


def read_folds(connection: Any, collation: str, planes: range = range(17)) -> dict[str, str]:
    """Return, by plain text, the characters of those planes that are equal to it, as hex ranges; no ASCII letters.

    The collation must have a single level of weights.
    """
    weights: dict[int, bytes] = {}
    for plane in planes:
        weights.update(_weights(connection, collation, plane))
    plain: dict[bytes, str] = {}
    for code in (*range(0x20, 0x7F), *range(0x4E00, 0x9FA6)):
        if code in weights:
            plain.setdefault(weights[code], chr(code).lower())
    found: dict[str, list[int]] = {}
    for code, weight in weights.items():
        text = _text(weight, plain)
        if text is not None and text != (chr(code).lower() if is_plain(chr(code)) else chr(code)):
            found.setdefault(text, []).append(code)
    return {text: _ranges(codes) for text, codes in sorted(found.items())}


def _weights(connection: Any, collation: str, plane: int) -> dict[int, bytes]:
    charset = collation.partition("_")[0]
    number = f"{plane * _PLANE} + a.d * 4096 + b.d * 256 + c.d * 16 + e.d"
    character = f"CONVERT(CONVERT(UNHEX(LPAD(HEX(n), 8, '0')) USING utf32) USING {charset})"
    asked = rows(
        connection,
        f"SELECT n, HEX(WEIGHT_STRING({character} COLLATE {collation})), HEX({character}) "
        f"FROM (SELECT {number} n FROM {_DIGITS} a, {_DIGITS} b, {_DIGITS} c, {_DIGITS} e) x",
    )
    return {
        int(code): bytes.fromhex(weight)
        for code, weight, text in asked
        if weight is not None and int(code) not in _SURROGATES and (text != "3F" or int(code) == ord("?"))
    }


def _text(weight: bytes, plain: dict[bytes, str]) -> str | None:
    """Return the plain text of that weight, None if there is none."""
    found, at = "", 0
    while at < len(weight):
        size = next((size for size in (4, 2, 1) if weight[at : at + size] in plain), 0)
        if not size:
            return None
        found += plain[weight[at : at + size]]
        at += size
    return found


def _ranges(codes: list[int]) -> str:
    runs: list[list[int]] = []
    for code in sorted(codes):
        if runs and runs[-1][1] == code - 1:
            runs[-1][1] = code
        else:
            runs.append([code, code])
    return " ".join(f"{first:x}" if first == last else f"{first:x}-{last:x}" for first, last in runs)
