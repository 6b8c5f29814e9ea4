"""`extra-args` of a dump: mydumper's and dumpling's flags, those that have a meaning here."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from typing import Literal

_FLAGS = {
    "-B": "databases", "--database": "databases",
    "-T": "tables", "--tables-list": "tables",
    "-F": "filesize", "--filesize": "filesize",
    "-r": "rows", "--rows": "rows",
    "-s": "statement-size", "--statement-size": "statement-size",
    "--where": "where",
    "--consistency": "consistency",
    "--no-locks": "no-locks",
}  # fmt: skip
Consistency = Literal["auto", "none", "flush", "lock"]
_CONSISTENCY: dict[str, Consistency] = {"auto": "auto", "none": "none", "flush": "flush", "lock": "lock"}
_SIZE = re.compile(r"(\d+)\s*(?:(k|m|g|t)(?:i?b)?|b)?", re.IGNORECASE)
_SHIFT = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40}
MEBIBYTE = 1 << 20


class UnsupportedFlag(ValueError):
    """A flag that mydumper or dumpling may know and we don't act on; the text says which, and what to do."""


@dataclass(frozen=True, slots=True)
class DumpFlags:
    """What `extra-args` sets; None or () for what it doesn't name. Sizes in bytes."""

    databases: tuple[str, ...] = ()
    tables: tuple[tuple[str, str], ...] = ()
    chunk_bytes: int | None = None
    rows: int | None = None
    statement_bytes: int | None = None
    where: str | None = None
    consistency: Consistency | None = None


def parse_flags(text: str) -> DumpFlags:
    """Read `extra-args`. Raises ValueError naming the flag; values are never quoted, they may be secrets."""
    given = _given(text)
    if "no-locks" in given:
        if "consistency" in given:
            raise ValueError("--no-locks and --consistency say the same; keep one")
        given["consistency"] = "none"
    consistency = given.get("consistency")
    if consistency == "snapshot":
        raise UnsupportedFlag("--consistency snapshot; write auto, flush, lock or none")
    if consistency is not None and consistency not in _CONSISTENCY:
        raise ValueError(f"--consistency takes one of {', '.join(_CONSISTENCY)}")
    databases = _names(given.get("databases", ""))
    return DumpFlags(
        databases=databases,
        tables=_tables(_names(given.get("tables", "")), databases),
        chunk_bytes=parse_size(given["filesize"]) if "filesize" in given else None,
        rows=_number(given["rows"], "-r/--rows") if "rows" in given else None,
        statement_bytes=_number(given["statement-size"], "-s/--statement-size") if "statement-size" in given else None,
        where=given.get("where"),
        consistency=_CONSISTENCY[consistency] if consistency is not None else None,
    )


def parse_size(text: str) -> int:
    """Bytes of a file size: a bare number is MiB, as in DM; `64MiB`, `64MB`, `1GiB`, `512KiB` (all binary) too."""
    match = _SIZE.fullmatch(text.strip())
    if match is None or int(match[1]) == 0:
        raise ValueError("write a size over 0: a number of MiB such as 64, or one with its unit such as 64MiB")
    if text.strip().isdigit():
        return int(match[1]) * MEBIBYTE
    return int(match[1]) << _SHIFT[(match[2] or "").lower()]


def _given(text: str) -> dict[str, str]:
    try:
        words = shlex.split(text)
    except ValueError:
        raise ValueError("a quote is not closed; write each value with a space or in one pair of quotes") from None
    given: dict[str, str] = {}
    while words:
        word = words.pop(0)
        flag, equals, value = word.partition("=") if word.startswith("--") else (word[:2], word[2:], word[2:])
        if not flag.startswith("-"):
            raise ValueError("a value without a flag before it; write -B, -T, -F, -r, -s, --where or --consistency")
        if flag not in _FLAGS:
            raise UnsupportedFlag(f"{flag}; take it out")
        name = _FLAGS[flag]
        if name in given:
            raise ValueError(f"{flag} is given twice; keep one")
        if name == "no-locks":
            if equals:
                raise ValueError("--no-locks takes no value")
        elif not equals:
            if not words:
                raise ValueError(f"{flag} needs a value")
            value = words.pop(0)
        given[name] = value
    return given


def _names(text: str) -> tuple[str, ...]:
    names = tuple(name.strip() for name in text.split(",")) if text else ()
    if not all(names):
        raise ValueError("an empty name in -B or -T; write names with one comma between")
    return names


def _tables(names: tuple[str, ...], databases: tuple[str, ...]) -> tuple[tuple[str, str], ...]:
    tables = []
    for name in names:
        schema, dot, table = name.partition(".")
        if not dot:
            if len(databases) != 1:
                raise ValueError("-T needs schema.table, or one schema under -B")
            schema, table = databases[0], name
        if not schema or not table:
            raise ValueError("-T needs schema.table, or one schema under -B")
        if databases and schema not in databases:
            raise ValueError(f"-T names schema `{schema}`, which -B leaves out; name it in both or drop -B")
        tables.append((schema, table))
    return tuple(tables)


def _number(text: str, flag: str) -> int:
    if not (text.isascii() and text.isdigit()):
        raise ValueError(f"{flag} takes a whole number")
    return int(text)
