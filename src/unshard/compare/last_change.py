"""The last change of a row in the relay log on this machine: its event, its transaction's GTID and its time.

The log is read backwards, a part at a time, up to `SEARCHED_BYTES` of a source. Its rows are brought into the form in
which both ends are compared, by the same functions, so that the key of the target is found under any rule.
"""

from __future__ import annotations

import mmap
from collections.abc import Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path

import pyarrow as pa

from unshard.binlog.events import event_of
from unshard.binlog.headers import Format, headers, read_format
from unshard.binlog.layout import plan_layouts
from unshard.binlog.listing import ListingRange, Shown, list_events
from unshard.binlog.rows import decode_range
from unshard.binlog.table_map import TableMap
from unshard.compare.executor.rows import as_target, key_literals, row_hashes
from unshard.compare.result import ComparisonOutcome, LastChange, RowDifference, TableOutcome
from unshard.compare.tables import ComparedShard, ComparedTable
from unshard.errors import BinlogError, UnshardError, Where
from unshard.model.change import IMAGE_FIELDS, Op
from unshard.model.position import FIRST_OFFSET, Position
from unshard.model.table import Table, TableName
from unshard.relay.log import RelayLog

SEARCHED_BYTES = 256 << 20
"""Bytes of each source's relay log that are searched at most, from its end."""

PART_BYTES = 16 << 20
_WORDS = {Op.INSERT: "INSERT", Op.UPDATE_BEFORE: "UPDATE", Op.UPDATE_AFTER: "UPDATE", Op.DELETE: "DELETE"}
_OTHER_STRUCTURE = "BINLOG-022"
_Key = tuple[str, ...]


def with_last_changes(
    found: ComparisonOutcome, tables: Mapping[str, ComparedTable], relays: Mapping[str, Path]
) -> ComparisonOutcome:
    """Return the outcome with the last change of each row that differs, or the reason why it is not known.

    `relays`: by source, the folder of its relay log. A log that can't be read gives a reason.
    """
    return replace(found, tables=tuple(_explained(one, tables.get(str(one.name)), relays) for one in found.tables))


def _explained(one: TableOutcome, table: ComparedTable | None, relays: Mapping[str, Path]) -> TableOutcome:
    if table is None or not one.differences:
        return one
    wanted = {_key_of(diff) for diff in one.differences}
    last: dict[_Key, LastChange] = {}
    notes: list[str] = []
    for source in dict.fromkeys(shard.source for shard in table.shards):
        shards = {shard.table.name: shard for shard in table.shards if shard.source == source}
        found, note = _search_source(source, table, shards, wanted - last.keys(), relays.get(source))
        last.update(found)
        notes.append(note)
    told = "; ".join(notes)
    differences = [_with_change(diff, last.get(_key_of(diff)), told) for diff in one.differences]
    return replace(one, differences=differences)


def _key_of(diff: RowDifference) -> _Key:
    return diff.literals or (diff.row_hash,)


def _with_change(diff: RowDifference, change: LastChange | None, note: str) -> RowDifference:
    return replace(diff, last_change=change, change_note="" if change is not None else note)


def _search_source(
    source: str, table: ComparedTable, shards: Mapping[TableName, ComparedShard], wanted: set[_Key], folder: Path | None
) -> tuple[dict[_Key, LastChange], str]:
    """Return the last changes in one source's relay log, and in words how far it was searched."""
    if folder is None or not folder.is_dir():
        return {}, f"{source} has no relay log on this machine"
    search = _Search(source, _of_key(table), shards)
    found: dict[_Key, LastChange] = {}
    left, since = SEARCHED_BYTES, ""
    try:
        for path, size in _files(RelayLog(folder)):
            if wanted <= found.keys() or left <= 0:
                break
            with path.open("rb") as file, closing(mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)) as data:
                begin = search.file(data, size, path, wanted - found.keys(), found, left)
            left -= size - begin
            since = f"{path.name}:{begin}"
    except (OSError, UnshardError) as error:
        told = f"{error.code}: {error.message}" if isinstance(error, UnshardError) else str(error)
        return found, f"the relay log of {source} can't be searched further: {told}"
    if search.altered:
        return found, f"its table was altered since: older changes in the relay log of {source} are not searched"
    return found, f"not in the relay log of {source} since {since}" if since else f"the relay log of {source} is empty"


def _of_key(table: ComparedTable) -> ComparedTable:
    """Return the table with the columns of its key alone, where it has one: the log may lack generated columns."""
    names = {name.lower() for name in table.key}
    columns = tuple(column for column in table.columns if column.name.lower() in names or not names)
    return replace(table, columns=columns)


def _files(log: RelayLog) -> Iterator[tuple[Path, int]]:
    """Yield the files that have events, newest first, with their sizes. The newest one may grow meanwhile.

    What `relay.meta` does not have on record yet is searched, too: the relay writes it once a second, and a change that
    came since is the last one all the same.
    """
    for name in reversed(log.files()):
        if (size := log.size(name)) > FIRST_OFFSET:
            yield log.path(name), size


@dataclass(slots=True)
class _Search:
    """The search for the last changes of rows of one target table, in relay log files of one source.

    `altered`: an event was met that today's structure of its table can't read. `readable` has, by the form of a table's
    events, whether it can.
    """

    source: str
    table: ComparedTable
    shards: Mapping[TableName, ComparedShard]
    altered: bool = False
    readable: dict[tuple[TableName, bytes, tuple[bytes, ...]], bool] = field(default_factory=dict)

    def file(
        self, data: mmap.mmap, size: int, path: Path, wanted: set[_Key], found: dict[_Key, LastChange], most: int
    ) -> int:
        """Add what is found to `found`, the last change of each; from where on the file was searched."""
        where = Where(self.source, file=str(path))
        form = read_format(data, where)
        bounds = _bounds(data, size, form, where)
        for begin, end in reversed(list(pairwise(bounds))):
            for key, (offset, op) in self._in_part(data, begin, end, form, wanted - found.keys(), where).items():
                found[key] = _told(self.source, data, size, form, where, offset, op, begin)
            if wanted <= found.keys() or size - begin >= most:
                return begin
        return bounds[0]

    def _in_part(
        self, data: mmap.mmap, begin: int, end: int, form: Format, wanted: set[_Key], where: Where
    ) -> dict[_Key, tuple[int, Op]]:
        decoded = decode_range(
            data,
            begin,
            end,
            checksum=form.checksum,
            wanted=self._structure,
            offsets=True,
            mariadb=form.mariadb,
            where=where,
        )
        last: dict[_Key, tuple[int, int, Op]] = {}
        for table, batch in decoded:
            first = len(IMAGE_FIELDS)
            names = batch.schema.names[first:-1]
            rows = pa.RecordBatch.from_arrays(batch.columns[first:-1], names)
            compared = as_target(rows, self.table, self.shards[table.name])
            keys = self._keys(compared)
            for place, key in enumerate(keys):
                if key in wanted:
                    op, seq, offset = (batch.column(at)[place].as_py() for at in (0, 1, -1))
                    if key not in last or last[key][0] <= seq:
                        last[key] = (seq, offset, Op(op))
        return {key: (offset, op) for key, (_, offset, op) in last.items()}

    def _keys(self, batch: pa.RecordBatch) -> Sequence[_Key]:
        if self.table.key:
            return key_literals(batch, self.table)
        return [(str(one),) for one in row_hashes(batch).tolist()]

    def _structure(self, table_map: TableMap, offset: int) -> Table | None:
        """Return today's structure of a wanted table; None for an event that was written with another one."""
        del offset
        shard = self.shards.get(table_map.name)
        if shard is None:
            return None
        form = table_map.name, bytes(table_map.types), tuple(table_map.metadata)
        if form not in self.readable:
            self.readable[form] = _is_readable(shard.table, table_map)
        self.altered |= not self.readable[form]
        return shard.table if self.readable[form] else None


def _is_readable(table: Table, table_map: TableMap) -> bool:
    """Return whether the structure is that of the events. Raises BinlogError for a type that can't be read at all."""
    try:
        plan_layouts(table, table_map)
    except BinlogError as error:
        if error.code != _OTHER_STRUCTURE:
            raise
        return False
    return True


def _bounds(data: mmap.mmap, size: int, form: Format, where: Where) -> list[int]:
    """Return the starts of parts of the file, each at a transaction, and the end of its last whole event."""
    bounds = [form.end]
    end = form.end
    for header in headers(data, size, checksum=form.checksum, where=where, verify_from=size, first=form.end):
        if event_of(header.code).kind.endswith("gtid") and header.offset - bounds[-1] >= PART_BYTES:
            bounds.append(header.offset)
        end = header.end
    return [*bounds, end] if end > bounds[-1] else bounds


def _told(
    source: str, data: mmap.mmap, size: int, form: Format, where: Where, offset: int, op: Op, begin: int
) -> LastChange:
    """Return the change of the event at `offset`, with its transaction's GTID; `begin` is at an earlier transaction."""
    gtid, timestamp = "", 0
    choice = ListingRange(begin, offset + 1)
    for item in list_events(
        data, size, checksum=form.checksum, where=where, choice=choice, naming=lambda query: ((), ()), growing=True
    ):
        if isinstance(item, Shown):
            gtid, timestamp = item.gtid, item.header.timestamp
    time = f"{datetime.fromtimestamp(timestamp, UTC):%Y-%m-%d %H:%M:%S} UTC" if timestamp else ""
    return LastChange(source, str(Position(Path(where.file or "").name, offset)), gtid, time, _WORDS[op])
