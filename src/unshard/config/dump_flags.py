"""Parses `extra-args` of a dump: the flags of mydumper and dumpling that have a meaning here."""

from __future__ import annotations

import re
import shlex
from dataclasses import dataclass
from typing import Literal

from unshard.config.table_rules import read_rules

_FLAGS = {
    "-B": "databases", "--database": "databases",
    "-T": "tables", "--tables-list": "tables",
    "-f": "filter", "--filter": "filter",
    "-F": "filesize", "--filesize": "filesize",
    "-r": "rows", "--rows": "rows",
    "-s": "statement-size", "--statement-size": "statement-size",
    "-t": "threads", "--threads": "threads",
    "--where": "where",
    "--consistency": "consistency",
}  # fmt: skip
_SWITCHES = {
    "--no-locks": "no-locks",
    "-W": "no-views", "--no-views": "no-views",
    "--escape-backslash": "escape-backslash",
    "--transactional-consistency": "transactional-consistency",
}  # fmt: skip
"""Flags without a value. `-W` and `--transactional-consistency` ask for what is done anyway."""

_REASONS = {
    **dict.fromkeys(("-m", "--no-schemas"), "the load makes the tables by their structures"),
    **dict.fromkeys(("-d", "--no-data"), "a task without its rows has nothing to follow from"),
    **dict.fromkeys(("-S", "--sql"), "whole tables are copied, or rows by --where"),
    **dict.fromkeys(("-x", "--regex"), "write --filter with /…/"),
    **dict.fromkeys(("-o", "--output", "--outputdir"), "`dir` under loaders names the folder"),
    **dict.fromkeys(("-c", "--compress"), "Parquet files are compressed as they are"),
    **dict.fromkeys(("--ca", "--cert", "--key"), "`security` under `from` of the source file has them"),
    **dict.fromkeys(
        ("-h", "--host", "-P", "--port", "-u", "--user", "-p", "--password"), "`from` of the source file has it"
    ),
    "--snapshot": "only TiDB reads the past",
    "--case-sensitive": "`case-sensitive` of the task says it",
}
"""Flags of mydumper and dumpling that users often give, and why they are refused."""

Consistency = Literal["auto", "none", "flush", "lock"]
_CONSISTENCY: dict[str, Consistency] = {"auto": "auto", "none": "none", "flush": "flush", "lock": "lock"}
_SIZE = re.compile(r"(\d+)\s*(?:(k|m|g|t)(?:i?b)?|b)?", re.IGNORECASE)
_SHIFT = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40}
MEBIBYTE = 1 << 20


class UnsupportedFlag(ValueError):
    """A flag that mydumper or dumpling may know and that is not supported here.

    The text names it and says what to do.
    """


@dataclass(frozen=True, slots=True)
class DumpFlags:
    """The settings in `extra-args`; a setting that is not named there is None or (). Sizes are in bytes."""

    databases: tuple[str, ...] = ()
    tables: tuple[tuple[str, str], ...] = ()
    filters: tuple[str, ...] = ()
    threads: int | None = None
    chunk_bytes: int | None = None
    rows: int | None = None
    statement_bytes: int | None = None
    where: str | None = None
    consistency: Consistency | None = None
    escape_backslash: bool | None = None


def parse_flags(text: str) -> DumpFlags:
    """Parse `extra-args`, and the files that `--filter @FILE` names.

    Raises ValueError that names the flag. It never quotes values, which may be secrets.
    """
    given, filters = _given(text)
    if "no-locks" in given:
        if "consistency" in given:
            raise ValueError("--no-locks and --consistency say the same; keep one")
        given["consistency"] = "none"
    if filters and "tables" in given:
        raise ValueError("-T and --filter both choose tables; keep one")
    consistency = given.get("consistency")
    if consistency == "snapshot":
        raise UnsupportedFlag("--consistency snapshot; write auto, flush, lock or none")
    if consistency is not None and consistency not in _CONSISTENCY:
        raise ValueError(f"--consistency takes one of {', '.join(_CONSISTENCY)}")
    databases = _names(given.get("databases", ""))
    return DumpFlags(
        databases=databases,
        tables=_tables(_names(given.get("tables", "")), databases),
        filters=tuple(rule for value in filters for rule in read_rules(value)),
        threads=_number(given["threads"], "-t/--threads") if "threads" in given else None,
        chunk_bytes=parse_size(given["filesize"]) if "filesize" in given else None,
        rows=_number(given["rows"], "-r/--rows") if "rows" in given else None,
        statement_bytes=_number(given["statement-size"], "-s/--statement-size") if "statement-size" in given else None,
        where=given.get("where"),
        consistency=_CONSISTENCY[consistency] if consistency is not None else None,
        escape_backslash=given["escape-backslash"] == "true" if "escape-backslash" in given else None,
    )


def parse_size(text: str) -> int:
    """Return a file size in bytes.

    A bare number is MiB, as in DM; `64MiB`, `64MB`, `1GiB`, `512KiB` (all binary) are accepted too.
    """
    match = _SIZE.fullmatch(text.strip())
    if match is None or int(match[1]) == 0:
        raise ValueError("write a size over 0: a number of MiB such as 64, or one with its unit such as 64MiB")
    if text.strip().isdigit():
        return int(match[1]) * MEBIBYTE
    return int(match[1]) << _SHIFT[(match[2] or "").lower()]


def _given(text: str) -> tuple[dict[str, str], list[str]]:
    """Return the values by name, and the values of --filter, which may be given several times."""
    try:
        words = shlex.split(text)
    except ValueError:
        raise ValueError("a quote is not closed; write each value with a space or in one pair of quotes") from None
    given: dict[str, str] = {}
    filters: list[str] = []
    while words:
        word = words.pop(0)
        flag, equals, value = word.partition("=") if word.startswith("--") else (word[:2], word[2:], word[2:])
        if not flag.startswith("-"):
            raise ValueError("a value without a flag before it; write -B, -T, -f, -F, -r, -s, --where or --consistency")
        name = _FLAGS.get(flag) or _SWITCHES.get(flag)
        if name is None:
            reason = f": {_REASONS[flag]}" if flag in _REASONS else ""
            raise UnsupportedFlag(f"{flag}{reason}; take it out")
        if name in given:
            raise ValueError(f"{flag} is given twice; keep one")
        if flag in _SWITCHES:
            value = _switch(flag, value.removeprefix("="))
        elif not equals:
            if not words:
                raise ValueError(f"{flag} needs a value")
            value = words.pop(0)
        value = value if word.startswith("--") else value.removeprefix("=")
        if name == "filter":
            filters.append(value)
        else:
            given[name] = value
    return given, filters


def _switch(flag: str, value: str) -> str:
    if value not in ("", "true", "false"):
        raise ValueError(f"{flag} takes no value")
    if value == "false" and flag != "--escape-backslash":
        raise UnsupportedFlag(f"{flag}=false; take it out")
    return value or "true"


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
