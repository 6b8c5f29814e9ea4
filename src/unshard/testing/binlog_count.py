"""Counts how often a server's own binlog contains each row change, to prove that every change was applied exactly once.

The binlog is read by the vendor's program, `mariadb-binlog` or `mysqlbinlog`, so that an error in our decoder can't
hide another one of ours.
"""

from __future__ import annotations

import re
import subprocess
import tempfile
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from unshard.model.table import TableName
from unshard.testing.throwaway_server import ThrowawayServer

Kind = Literal["INSERT", "UPDATE", "DELETE"]
Image = tuple[str, ...]

_HEAD = re.compile(r"^### (INSERT INTO|UPDATE|DELETE FROM) `(.+)`\.`(.+)`$")
_VALUE = re.compile(r"^###   @(\d+)=(.*)$")
_ESCAPE = re.compile(r"\\(x[0-9a-f]{2}|[btnfr'\\])")
_SHOWN = {"b": "\\x08", "t": "\\x09", "n": "\\x0a", "f": "\\x0c", "r": "\\x0d", "'": "'", "\\": "\\"}
"""What `mariadb-binlog` writes where `mysqlbinlog` writes a backslash and a letter."""
_KINDS: dict[str, Kind] = {"INSERT INTO": "INSERT", "UPDATE": "UPDATE", "DELETE FROM": "DELETE"}


@dataclass(frozen=True, slots=True)
class RowEvent:
    """One row of one row event. Images are the values as `mariadb-binlog -v` writes them, in table order."""

    table: TableName
    kind: Kind
    before: Image
    after: Image


def row_events(server: ThrowawayServer, tables: Iterable[TableName] | None = None) -> Counter[RowEvent]:
    """Return every row change that the server has logged, with the number of times; of these tables, or of all.

    Reads the files in the server's data folder, so it works even after the server was killed.
    """
    return Counter(row_log(server, tables))


def row_log(server: ThrowawayServer, tables: Iterable[TableName] | None = None) -> Iterator[RowEvent]:
    """Yield the same changes in the order of the binlog."""
    wanted = None if tables is None else set(tables)
    files = sorted(path for path in server.data.glob(f"{server.options['log_bin']}.*") if path.suffix[1:].isdigit())
    for event in _events(server.binlog_program(), files):
        if wanted is None or event.table in wanted:
            yield event


def as_applied(log: Iterable[RowEvent]) -> Iterator[RowEvent]:
    """Yield the changes, with a change of the key (the first column) as the DELETE and the INSERT that apply it."""
    for event in log:
        if event.kind == "UPDATE" and event.before[0] != event.after[0]:
            yield RowEvent(event.table, "DELETE", event.before, ())
            yield RowEvent(event.table, "INSERT", (), event.after)
        else:
            yield event


def count_by_key(events: Counter[RowEvent], key: tuple[int, ...] = (0,)) -> Counter[tuple[TableName, Kind, Image]]:
    """Return how often each key of each table was inserted, updated and deleted.

    `key` has the indexes of the key's columns. An UPDATE counts under the key from before it.
    """
    counts: Counter[tuple[TableName, Kind, Image]] = Counter()
    for event, times in events.items():
        image = event.before or event.after
        counts[event.table, event.kind, tuple(image[place] for place in key)] += times
    return counts


def moved(events: Counter[RowEvent], routes: dict[TableName, TableName]) -> Counter[RowEvent]:
    """Return the changes as a migration with these routes would make them. Tables without a route are left out."""
    changed: Counter[RowEvent] = Counter()
    for event, times in events.items():
        if event.table in routes:
            changed[RowEvent(routes[event.table], event.kind, event.before, event.after)] += times
    return changed


def exactly_once(upstream: Counter[RowEvent], downstream: Counter[RowEvent]) -> list[str]:
    """Return the first twenty changes that were lost, applied twice or made up; empty if each was applied exactly once.

    For runs without compaction and without safe mode, in which each change must be in both binlogs.
    """
    lost = upstream - downstream
    more = downstream - upstream
    lines = [f"missing {times} times: {event}" for event, times in lost.items()]
    lines += [
        f"{'applied again' if event in upstream else 'from nowhere'} {times} times: {event}"
        for event, times in more.items()
    ]
    return lines[:20]


def _events(program: list[str], files: list[Path]) -> Iterator[RowEvent]:
    if not files:
        return
    command = [*program, "--no-defaults", "--base64-output=decode-rows", "-v", *map(str, files)]
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(
            command, stdout=subprocess.PIPE, stderr=said, encoding="utf-8", errors="surrogateescape"
        )
        assert process.stdout is not None
        with process.stdout as lines:
            yield from parse(map(_as_mariadb_writes, lines) if program[-1].endswith("mysqlbinlog") else lines)
        if process.wait() != 0:
            said.seek(0)
            names = ", ".join(file.name for file in files)
            raise RuntimeError(f"{program[-1]} failed on {names}:\n{said.read()[-2000:].decode(errors='replace')}")


def _as_mariadb_writes(line: str) -> str:
    return _ESCAPE.sub(lambda found: _SHOWN.get(found[1], found[0]), line) if line.startswith("###   @") else line


def parse(lines: Iterable[str]) -> Iterator[RowEvent]:
    """Yield row events from the comment lines of `mariadb-binlog -v`."""
    table: TableName | None = None
    kind: Kind = "INSERT"
    images: dict[str, list[str]] = {}
    part = ""
    for line in lines:
        head = _HEAD.match(line)
        if (head or not line.startswith("###")) and table is not None:
            yield RowEvent(table, kind, tuple(images.get("WHERE", ())), tuple(images.get("SET", ())))
            table = None
        if head:
            kind, table = _KINDS[head[1]], TableName(head[2], head[3])
            images, part = {}, ""
        elif table is not None and line.strip() in ("### WHERE", "### SET"):
            part = line.split()[1]
            images[part] = []
        elif table is not None and (value := _VALUE.match(line.rstrip("\n"))):
            images[part].append(value[2])
    if table is not None:
        yield RowEvent(table, kind, tuple(images.get("WHERE", ())), tuple(images.get("SET", ())))
