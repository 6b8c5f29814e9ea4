"""The state of a dump besides its data: location, tables, files; stored in `.unshard/` and in `metadata`.

A dump folder::

    metadata                        mydumper's: the location where the binlog is to be read from
    shop-schema-create.sql          CREATE DATABASE
    shop.orders-schema.sql          CREATE TABLE
    shop.orders.00001.parquet       rows
    .unshard/dump.json              DumpHeader
    .unshard/<run>/shop.orders.json Record, one a finished table
    .unshard/<run>/parts/           files that are being written

A dump that starts from nothing gets a new run's folder, so that a late process of an earlier run can't add to it.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from unshard.crash_point import reach
from unshard.dump.durable import write_durably, write_once
from unshard.dump.files import stem
from unshard.dump.plan import Resolved
from unshard.errors import DumpError, Where
from unshard.model.position import Location, Position
from unshard.model.stored_form import stamped, version_of
from unshard.model.table import Table, TableName, name_form, name_of

STATE = ".unshard"
HEADER = "dump.json"


@dataclass(frozen=True, slots=True)
class DumpedFile:
    """One data file: its final name, its temporary name (`part`) until the dump is finished, size in bytes, CRC-32."""

    name: str
    part: str
    rows: int
    size: int
    crc32: int

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form, which `from_dict` reads."""
        return {"name": self.name, "part": self.part, "rows": self.rows, "size": self.size, "crc32": self.crc32}

    @classmethod
    def from_dict(cls, form: Mapping[str, Any]) -> DumpedFile:
        """Read the JSON form of a file."""
        return cls(form["name"], form["part"], form["rows"], form["size"], form["crc32"])


@dataclass(frozen=True, slots=True)
class Record:
    """The record of one finished table.

    `location` is that of the table's own snapshot; `counter` is its next AUTO_INCREMENT value.
    """

    table: Table
    location: Location
    files: tuple[DumpedFile, ...]
    counter: int | None = None

    @property
    def rows(self) -> int:
        """Count of the rows in all files."""
        return sum(file.rows for file in self.files)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form, which `from_dict` reads."""
        return {
            "table": self.table.to_dict(),
            "location": location_form(self.location),
            "files": [file.to_dict() for file in self.files],
            "counter": self.counter,
        }

    @classmethod
    def from_dict(cls, form: dict[str, Any]) -> Record:
        """Read the form of `to_dict`."""
        return cls(
            Table.from_dict(form["table"]),
            location_from(form["location"]),
            tuple(map(DumpedFile.from_dict, form["files"])),
            form["counter"],
        )


@dataclass(frozen=True, slots=True)
class DumpHeader:
    """The header of a dump: its plan.

    Args:
        run: the name of the run's folder.
        settings: the settings that a resumed dump must have too.
        begin: the binlog location at the begin, which is read before the tables are listed. The copy of each table has
            all that lies before it.
        databases: CREATE DATABASE by schema.
        rows_estimate: the rows of all tables by the server's statistics.
        started: UTC, as text.
        end: for `consistency: none` only: up to it, events may be in the dump or not.
        attempt: as in `SubtaskConfig`.
        estimates: the rows of each table by the statistics, by `stem`; a dump of an earlier version has none.
        selection: the rules by which `tables` were selected (`TableSelection.to_dict`); None: an earlier version has
            made the dump, which did not record them.
    """

    run: str
    source: str
    consistency: Resolved
    settings: dict[str, Any]
    begin: Location
    tables: tuple[TableName, ...]
    databases: dict[str, str]
    rows_estimate: int
    started: str
    finished: bool = False
    end: Location | None = None
    attempt: str = ""
    estimates: Mapping[str, int] = field(default_factory=dict)
    selection: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class DumpResult:
    """The binlog locations of a dump. Events of a table at or before the table's own location are in the dump already.

    `begin` is at or before every table's location, as the dump takes no earlier snapshot. The binlog is read from
    there. `end` is set for `consistency: none` only: up to it, events may be in the dump or not.
    """

    begin: Location
    tables: dict[TableName, Location]
    end: Location | None = None


@dataclass(frozen=True, slots=True)
class Dump:
    """A dump folder as read back; `records` has the record of each source table."""

    directory: Path
    header: DumpHeader
    records: dict[TableName, Record]

    @property
    def result(self) -> DumpResult:
        """Locations at the dump's begin and end, and of each table."""
        tables = {name: record.location for name, record in self.records.items()}
        return DumpResult(self.header.begin, tables, self.header.end)


def location_form(location: Location) -> dict[str, str]:
    """Return the JSON form, which `location_from` reads."""
    return {"position": str(location.position), "gtid": location.gtid}


def location_from(form: dict[str, str]) -> Location:
    """Read the form of `location_form`."""
    return Location(Position.parse(form["position"]), form["gtid"])


def read_header(directory: Path) -> DumpHeader | None:
    """Return the folder's header, or None where no dump of ours was begun."""
    form = _read(directory / STATE / HEADER)
    if form is None:
        return None
    version_of(form, "the dump", Where(file=str(directory)))
    return DumpHeader(
        form["run"],
        form["source"],
        form["consistency"],
        form["settings"],
        location_from(form["begin"]),
        tuple(map(name_of, form["tables"])),
        form["databases"],
        form["rows_estimate"],
        form["started"],
        form["finished"],
        location_from(form["end"]) if form["end"] else None,
        form.get("attempt", ""),
        form.get("estimates", {}),
        form.get("selection"),
    )


def header_of_attempt(directory: Path, attempt: str) -> DumpHeader | None:
    """As `read_header`, but None for a dump of an earlier attempt, which is made again. `attempt` "": of any."""
    header = read_header(directory)
    return header if header is not None and attempt in ("", header.attempt) else None


def write_header(directory: Path, header: DumpHeader) -> None:
    """Replace the header durably."""
    form = {
        "run": header.run,
        "source": header.source,
        "consistency": header.consistency,
        "settings": header.settings,
        "begin": location_form(header.begin),
        "tables": list(map(name_form, header.tables)),
        "databases": header.databases,
        "rows_estimate": header.rows_estimate,
        "started": header.started,
        "finished": header.finished,
        "end": location_form(header.end) if header.end else None,
        "attempt": header.attempt,
        "estimates": dict(header.estimates),
        "selection": header.selection,
    }
    reach("dump-header-before")
    write_durably(directory / STATE / HEADER, json.dumps(stamped(form), indent=1))
    reach("dump-header-after")


def run_folder(directory: Path, run: str) -> Path:
    """Return the folder of one run of the dump."""
    return directory / STATE / run


def parts_folder(directory: Path, run: str) -> Path:
    """Return the folder of the files that a run is writing."""
    return run_folder(directory, run) / "parts"


def failure_mark(directory: Path, run: str) -> Path:
    """Return the file that tells the tasks of a dump under a lock that one of them has failed."""
    return run_folder(directory, run) / "failed"


def _record_path(directory: Path, run: str, table: TableName) -> Path:
    return run_folder(directory, run) / f"{stem(table)}.json"


def write_record(directory: Path, run: str, record: Record) -> bool:
    """Write the record of a finished table, once and for all; False where another attempt has finished it before."""
    reach("dump-table-before")
    written = write_once(_record_path(directory, run, record.table.name), record.to_dict())
    reach("dump-table-after")
    return written


def read_record(directory: Path, run: str, table: TableName) -> Record | None:
    """Return the record of a finished table, or None."""
    form = _read(_record_path(directory, run, table))
    return None if form is None else Record.from_dict(form)


def _read(path: Path) -> dict[str, Any] | None:
    """Return a file's JSON object; None where it does not exist. Progress is read while a dump starts over."""
    try:
        form: dict[str, Any] = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        return None
    return form


def drop_record(directory: Path, run: str, table: TableName) -> None:
    """Delete a table's record: the table is unfinished again."""
    _record_path(directory, run, table).unlink(missing_ok=True)


def read_records(directory: Path, header: DumpHeader) -> dict[TableName, Record]:
    """Return the records of all tables that are finished so far."""
    found = ((name, read_record(directory, header.run, name)) for name in header.tables)
    return {name: record for name, record in found if record is not None}


@dataclass(slots=True)
class FinishedFiles:
    """A reader of the files of finished tables, for a caller that asks repeatedly: each record is read once."""

    _run: str = ""
    _known: dict[str, tuple[DumpedFile, ...]] = field(default_factory=dict)

    def of(self, directory: Path, run: str) -> dict[str, tuple[DumpedFile, ...]]:
        """Return the files by the name of their record; none where the run's folder does not exist."""
        known = self._known if run == self._run else {}
        found = {}
        folder = run_folder(directory, run)
        for name in os.listdir(folder) if folder.exists() else ():
            form = None if name in known or not name.endswith(".json") else _read(folder / name)
            if form is not None:
                found[name] = tuple(map(DumpedFile.from_dict, form["files"]))
            elif name in known:
                found[name] = known[name]
        self._run, self._known = run, found
        return found


def finish(directory: Path, header: DumpHeader) -> None:
    """Mark the dump complete: write mydumper's `metadata`, then the header."""
    write_durably(directory / "metadata", _mydumper_metadata(header))
    write_header(directory, replace(header, finished=True))


def read_dump(directory: Path) -> Dump:
    """Read a finished dump of ours. Raises DumpError DUMP-007 if there is none, DUMP-006 if a table has no record."""
    header = read_header(directory)
    if header is None or not header.finished:
        raise DumpError("DUMP-007", Where(file=str(directory)))
    records = read_records(directory, header)
    missing = set(header.tables).difference(records)
    if missing:
        raise DumpError("DUMP-006", Where(header.source, str(min(missing)), file=str(directory)))
    return Dump(directory, header, records)


def too_early(records: Mapping[TableName, Record], header: DumpHeader) -> set[TableName]:
    """Return the tables whose snapshot lacks what lies before the dump's begin; an earlier version took such ones."""
    return {name for name, record in records.items() if record.location.position < header.begin.position}


def new_run() -> str:
    """Return a random name for a new run."""
    return os.urandom(6).hex()


def now_text() -> str:
    """Return the time in UTC as text, to the second."""
    return datetime.now(UTC).strftime("%Y-%m-%d %H:%M:%S")


def _mydumper_metadata(header: DumpHeader) -> str:
    position = header.begin.position
    return (
        f"Started dump at: {header.started}\nSHOW MASTER STATUS:\n\tLog: {position.file}\n\tPos: {position.offset}\n"
        f"\tGTID:{header.begin.gtid}\n\nFinished dump at: {now_text()}\n"
    )
