"""Comparisons of texts by a server's collations, asked of the server itself."""

from __future__ import annotations

from typing import Any

from unshard.mysql.connection import rows
from unshard.mysql.tidb_collations import SAMPLE


def weights(connection: Any, collation: str, charset: str) -> dict[str, bytes]:
    """By text of `SAMPLE` what the server sorts it by: equal for equal texts.

    Texts that the character set lacks are left out. Driver errors come up, 1273 for a collation that the server lacks.
    """
    asked = []
    # big5's WEIGHT_STRING is that of sorting, by which characters are equal that compare as different
    own = charset.lower() == "big5"
    for text in SAMPLE:
        value = f"CONVERT(_utf8mb4 0x{text.encode().hex()} USING {charset})"
        kept = f"CONVERT({value} USING utf8mb4) = CONVERT(_utf8mb4 0x{text.encode().hex()} USING utf8mb4)"
        weight = value if own and not text.isascii() else f"WEIGHT_STRING({value} COLLATE {collation})"
        asked += [f"HEX({weight})", f"{kept} COLLATE utf8mb4_bin"]
    padded = f"CONVERT('A' USING {charset}) = CONVERT('A ' USING {charset}) COLLATE {collation}"
    ((*found, pads),) = rows(connection, f"SELECT {', '.join(asked)}, {padded}")
    known = {
        text: str(weight).encode() for text, weight, kept in zip(SAMPLE, found[::2], found[1::2], strict=True) if kept
    }
    if pads:
        known["A "] = known["A"]
    return known
