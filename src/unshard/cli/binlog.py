"""`unshard binlog show`: the events of one binlog or relay file, as lines for a person or as JSON for a program."""

from __future__ import annotations

import json
import mmap
import os
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from struct import unpack_from

from unshard.binlog.headers import Format, read_format
from unshard.binlog.listing import ListingNote, ListingRange, Named, Shown, list_events
from unshard.binlog.query import QueryEvent
from unshard.cli.binlog_lines import HEAD, Totals, event_json, event_lines, total_json, total_lines
from unshard.ddl.context import Context
from unshard.ddl.events import dm_events
from unshard.ddl.parse import classify
from unshard.ddl.statement import Ddl
from unshard.errors import BinlogError, DdlError, Where
from unshard.model.position import FIRST_OFFSET, Position
from unshard.model.table import TableName

_IN_USE = 0x01
_FLAGS_AT = FIRST_OFFSET + 17
_VIEWS = {"CREATE": ("create view",), "DROP": ("drop view",)}


class WrongUse(ValueError):
    """An argument that is not valid; the text says why."""


@dataclass(frozen=True, slots=True)
class BinlogWish:
    """The arguments of `unshard binlog show`, as they were typed."""

    table: str | None = None
    start: str | None = None
    stop: str | None = None
    limit: int | None = None
    as_json: bool = False
    full: bool = False


def show_binlog(path: Path, wish: BinlogWish, say: Callable[[str], None]) -> bool:
    """List the file line by line to `say`; whether all of it could be read.

    Memory doesn't grow with the file: it is mapped, and one event at a time is looked at. Raises WrongUse, and
    BinlogError after the lines of everything before the damage: 001 to 004, 050, 051.
    """
    where = Where(file=str(path))
    choice = ListingRange(_offset(wish.start, path) or 0, _offset(wish.stop, path), _table(wish.table))
    try:
        with path.open("rb") as file:
            data = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    except OSError as error:
        raise BinlogError("BINLOG-051", where, error.strerror or str(error)) from None
    except ValueError:  # what mmap says of an empty file
        raise BinlogError("BINLOG-003", where, "it is empty") from None
    with data:
        return _show(data, path, where, choice, wish, say)


def _show(
    data: mmap.mmap, path: Path, where: Where, choice: ListingRange, wish: BinlogWish, say: Callable[[str], None]
) -> bool:
    file_format = read_format(data, where)
    totals = Totals()
    if not wish.as_json:
        say(f"{path.name}: {file_format.server_version}, checksums {'CRC32' if file_format.checksum else 'off'}")
        say(HEAD)
    events = list_events(
        data,
        len(data),
        checksum=file_format.checksum,
        where=where,
        choice=choice,
        naming=lambda query: name_statement(query, file_format),
        growing=_growing(data, path),
    )
    try:
        for item in events:
            if isinstance(item, Shown):
                if totals.events == wish.limit:
                    _note(f"stopped before {item.header.offset} by --limit", wish, say)
                    break
                totals.add(item)
            _say_item(item, wish, say)
    except BinlogError:
        _say_totals(totals, wish, say)
        raise
    _say_totals(totals, wish, say)
    return not totals.unread


def _say_item(item: Shown | ListingNote, wish: BinlogWish, say: Callable[[str], None]) -> None:
    if isinstance(item, ListingNote):
        _note(item.text, wish, say)
    elif wish.as_json:
        say(event_json(item))
    else:
        for line in event_lines(item, full=wish.full):
            say(line)


def _note(text: str, wish: BinlogWish, say: Callable[[str], None]) -> None:
    say(json.dumps({"note": text}, ensure_ascii=False) if wish.as_json else f"-- {text}")


def _say_totals(totals: Totals, wish: BinlogWish, say: Callable[[str], None]) -> None:
    for line in [total_json(totals)] if wish.as_json else ["", *total_lines(totals)]:
        say(line)


def name_statement(query: QueryEvent, file_format: Format) -> Named:
    """Return DM's names for a statement and its tables. A statement that can't be read has none."""
    context = Context(schema=query.schema, sql_mode=query.sql_mode, mariadb=file_format.mariadb)
    try:
        statement = classify(query.sql, context)
    except (DdlError, ValueError):
        return (), ()
    if isinstance(statement, Ddl):
        tables = statement.tables or (TableName(statement.schema, ""),)
        return dm_events(statement), tables
    if statement.reason == "view":
        return _VIEWS.get(query.sql.split(maxsplit=1)[0].upper(), ()), ()
    return (), ()


def _growing(data: mmap.mmap, path: Path) -> bool:
    """Return whether the file may grow.

    A server marks the file that it writes; a relay writes the last file of its folder.
    """
    if unpack_from("<H", data, _FLAGS_AT)[0] & _IN_USE:
        return True
    return (path.parent / "relay.meta").exists() and not _later(path)


def _later(path: Path) -> bool:
    try:
        own = Position(path.name).number
    except ValueError:
        return False
    base = path.name.rpartition(".")[0]
    numbers = (other.rpartition(".")[2] for other in os.listdir(path.parent) if other.rpartition(".")[0] == base)
    return any(number.isdigit() and int(number) > own for number in numbers)


def _offset(text: str | None, path: Path) -> int | None:
    """Return the offset in `offset` or `file:offset`; None for ""."""
    if text is None:
        return None
    file, _, number = text.rpartition(":")
    if file and file != path.name:
        raise WrongUse(f"position {text} is in another file than {path.name}")
    if not number.isascii() or not number.isdigit():
        raise WrongUse(f"position {text!r} is neither OFFSET nor FILE:OFFSET")
    return int(number)


def _table(text: str | None) -> TableName | None:
    if text is None:
        return None
    schema, dot, table = text.replace("`", "").partition(".")
    if not (schema and dot and table):
        raise WrongUse(f"table {text!r} is not SCHEMA.TABLE")
    return TableName(schema, table)
