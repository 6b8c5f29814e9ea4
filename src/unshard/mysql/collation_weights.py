"""Finds strings that are equal under the target's collation and not under the source's, by queries to both servers."""

from __future__ import annotations

from typing import Any

import MySQLdb

from unshard.errors import UnshardError
from unshard.mysql.connection import Endpoint, rows, session
from unshard.mysql.failures import Failure, failure_of
from unshard.mysql.tidb_collations import SAMPLE, Difference, charset_of_name, difference


def collation_difference(here: Endpoint, there: Endpoint, own: tuple[str, str], chosen: str) -> Difference | None:
    """Return how a collation of the source `here` differs from the collation `chosen` of the target `there`.

    `own` is the source's collation and its character set. None if a server has no way to show how it compares texts.
    Raises SourceError, TargetError.
    """
    try:
        with session(here, "source") as connection:
            mine = weights(connection, *own)
        with session(there, "target") as connection:
            return difference(mine, weights(connection, chosen, charset_of_name(chosen)))
    except UnshardError as error:
        if isinstance(error.__cause__, MySQLdb.Error) and failure_of(error.__cause__) is Failure.OTHER:
            return None
        raise


def weights(connection: Any, collation: str, charset: str) -> dict[str, bytes]:
    """Return, for each text of `SAMPLE`, the weight by which the server compares it: equal for equal texts.

    Texts that the character set lacks are left out. Driver errors are not translated; error 1273 means that the server
    lacks the collation.
    """
    asked = []
    # big5's WEIGHT_STRING has the weights for sorting, which are equal for characters that compare as different
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
