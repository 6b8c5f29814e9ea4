"""Step *merge*: cuts ordered changes into chunks of statements, many rows to a statement if the result is the same.

| change | statement | rows per statement |
|---|---|---|
| INSERT | `INSERT INTO … VALUES (…),(…)` | many |
| INSERT of some columns | `INSERT INTO … SET …` | one |
| UPDATE | `INSERT INTO … VALUES (…),(…) ON DUPLICATE KEY UPDATE …` | many |
| DELETE | `DELETE … WHERE key IN (…)` or `… WHERE (…) OR (…)` | many |
| UPDATE, free, several unique keys | the same after a query that locks its rows; where another key may be found \
first, `UPDATE … SET … WHERE …;UPDATE …` in one packet | many |
| UPDATE, ordered | `UPDATE … SET … WHERE … LIMIT 1` | one |
| UPDATE_OR_INSERT | as an UPDATE; then INSERTs of the rows that the target lacks | many |
| UPDATE_SET | `UPDATE … SET … WHERE …;UPDATE …` in one packet | many |
| DELETE, table without key | `DELETE … WHERE … LIMIT 1` | one |
| DELETE, table in a family of foreign keys | `DELETE … WHERE …` | one |
| *in safe mode:* INSERT, UPDATE | `REPLACE INTO … VALUES (…),(…)` | many |
| UPDATE, free, several unique keys | `REPLACE INTO … SET …` | one |
| UPDATE, ordered | `DELETE … WHERE`, where the key differs, and `REPLACE INTO … SET …` | one |
| *without* `multiple-rows`*:* INSERT | as above | one |
| UPDATE | `UPDATE … SET … WHERE … LIMIT 1` | one |
| DELETE | `DELETE … WHERE … LIMIT 1` | one |

In safe mode a change may meet its own result, or a later one, and no row is counted as missing. REPLACE deletes the row
of that key itself, so a DELETE before it is written only where the key has changed, or `old_key` has keys of rows that
may have moved (`sync.changes.safe_mode_moves`).

An UPDATE by ON DUPLICATE KEY could change another row through a second unique key. A table that has one gets it only
where its own row exists, is locked, and is found by the primary key first (`TargetPlan.locked_upserts`).
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np
import pyarrow as pa

from unshard.model.change import Op, ValuesList
from unshard.model.table import quote_name
from unshard.sync.batch.plan import BatchShape, TargetPlan
from unshard.sync.changes.encode import key_separator

STATEMENT_BYTES = 1 << 20
EXAMPLE_LENGTH = 200
"""Bytes after which a list is closed and the next statement begins; a single row may be longer."""


@dataclass(frozen=True, slots=True)
class _Texts:
    """One binary column as its buffer: row i is `data[offsets[i]:offsets[i+1]]`."""

    offsets: np.ndarray
    data: memoryview

    @classmethod
    def of(cls, column: pa.ChunkedArray) -> _Texts:
        array = column.combine_chunks() if column.num_chunks != 1 else column.chunk(0)
        _, offsets, data = array.buffers()
        view = np.frombuffer(offsets, dtype=np.int32)[array.offset : array.offset + len(array) + 1]
        return cls(view, memoryview(data) if data is not None else memoryview(b""))

    def slice(self, start: int, end: int) -> bytes:
        return bytes(self.data[self.offsets[start] : self.offsets[end]])

    def sizes(self) -> np.ndarray:
        return np.diff(self.offsets)


@dataclass(frozen=True, slots=True)
class Keys:
    """The keys by which the rows of an UPDATE or DELETE are found: texts `start` to `end` of a column."""

    texts: _Texts
    target: TargetPlan
    start: int
    end: int

    def __len__(self) -> int:
        return self.end - self.start

    def where(self, first: int, last: int) -> bytes:
        """Return the condition that finds rows `first` to `last` of these."""
        return _where(self.target, self.texts.slice(self.start + first, self.start + last))

    def example(self, number: int) -> str:
        """Return the condition that finds that row, for people: shortened, and with invalid bytes escaped."""
        text = self.where(number, number + 1).decode("utf-8", "backslashreplace")
        return text if len(text) <= EXAMPLE_LENGTH else text[: EXAMPLE_LENGTH - 1] + "…"


@dataclass(frozen=True, slots=True)
class Statement:
    """One statement: `rows` changes of kind `op` on target `target`; `may_miss` of them may find no row.

    `keys` are those of an UPDATE or DELETE. `upsert` is true for an UPDATE by ON DUPLICATE KEY; any other UPDATE of
    many rows is as many statements in one text. `values` is the list of an INSERT, an upsert or a REPLACE of rows.
    `inserts` returns, for a range of an UPDATE's rows that the target lacks, the INSERTs of those that an
    UPDATE_OR_INSERT changes; None where there is none, or where the statement itself inserts them.
    """

    sql: bytes
    op: Op
    target: int
    rows: int
    may_miss: int = 0
    keys: Keys | None = field(default=None, compare=False, repr=False)
    upsert: bool = False
    inserts: Callable[[int, int], Iterator[Statement]] | None = field(default=None, compare=False, repr=False)
    values: ValuesList | None = field(default=None, compare=False, repr=False)


@dataclass(frozen=True, slots=True)
class Chunk:
    """The changes that one transaction applies, numbered from 1 in each partition, through all slices of its batch.

    A chunk that is too large is applied in pieces: `start` is the number of a piece's first change in the chunk, and
    `last` is true for the last piece. `cut` returns the statements for a range of the chunk's changes. `seqs` are the
    numbers of all changes of the chunk in the log; of changes that were compacted, the last one's.
    """

    number: int
    rows: int
    statements: tuple[Statement, ...]
    cut: Callable[[int, int], tuple[Statement, ...]] = field(compare=False, repr=False)
    start: int = 0
    last: bool = True
    seqs: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.int64), compare=False, repr=False)

    @property
    def end(self) -> int:
        """The number after its last change in the whole chunk."""
        return self.start + self.rows

    @property
    def whole(self) -> bool:
        """True if this is the whole chunk and no piece of it."""
        return self.last and not self.start

    def part(self, start: int, end: int) -> Chunk:
        """Return the piece with the chunk's changes from `start` to `end`, which must be in this one."""
        last = self.last and end == self.end
        return replace(self, rows=end - start, statements=self.cut(start, end), start=start, last=last)

    def smaller(self) -> tuple[Chunk, ...]:
        """Split the piece into its statements, or a single statement into halves; a single change gives none. Pure.

        Used where the target refuses the piece as too large: each part gets a transaction and a receipt, in order.
        """
        bounds = [self.start]
        for statement in self.statements:
            if statement.rows:  # a statement without rows belongs to the next one's change
                bounds.append(bounds[-1] + statement.rows)
        if len(bounds) == 2:
            bounds.insert(1, self.start + self.rows // 2)
        if self.rows == 1:
            return ()
        return tuple(self.part(start, end) for start, end in itertools.pairwise(bounds))


@dataclass(frozen=True, slots=True)
class _Columns:
    """The changes. `op` is UPDATE for an UPDATE_OR_INSERT, and `made` is true for these."""

    op: np.ndarray
    made: np.ndarray
    target: np.ndarray
    key: _Texts
    old_key: _Texts
    row: _Texts
    ordered: np.ndarray


def merge(
    changes: pa.Table, targets: Mapping[int, TargetPlan], shape: BatchShape, before: int = 0, *, safe: bool = False
) -> Iterator[Chunk]:
    """Cut `changes` into chunks, lazily, numbered from `before` on. Pure: the same input gives the same cuts.

    `safe` writes them in safe mode; then no images that lack columns and no tables without a key come here.
    """
    if not len(changes):
        return
    op = changes.column("op").to_numpy()
    made = op == Op.UPDATE_OR_INSERT
    columns = _Columns(
        op=np.where(made, np.int8(Op.UPDATE), op),
        made=made,
        target=changes.column("target").to_numpy(),
        key=_Texts.of(changes.column("key")),
        old_key=_Texts.of(changes.column("old_key")),
        row=_Texts.of(changes.column("row")),
        ordered=changes.column("ordered").to_numpy(),
    )
    sizes = np.cumsum(columns.key.sizes().astype(np.int64) + columns.row.sizes() + columns.old_key.sizes())
    seqs = changes.column("seq").to_numpy()
    kinds = (columns.target.astype(np.int64) * 16 + columns.op) * 2 + columns.ordered
    turns = np.flatnonzero(np.diff(kinds)) + 1
    for number, (start, end) in enumerate(_cuts(sizes, shape.chunk_rows, shape.chunk_bytes), before + 1):
        cut = partial(_cut, columns, targets, sizes, shape, turns, start, safe=safe)
        yield Chunk(number, end - start, cut(0, end - start), cut, seqs=seqs[start:end])


def _cut(
    columns: _Columns,
    targets: Mapping[int, TargetPlan],
    sizes: np.ndarray,
    shape: BatchShape,
    turns: np.ndarray,
    base: int,
    start: int,
    end: int,
    *,
    safe: bool,
) -> tuple[Statement, ...]:
    """Return the statements for changes `start` to `end`, counted from `base`; `turns` are where the kind changes.

    A kind is a target, an operation, and whether the changes are ordered.
    """
    start, end = base + start, base + end
    inner = turns[(turns > start) & (turns < end)]
    runs = itertools.pairwise([start, *inner.tolist(), end])
    return tuple(s for a, b in runs for s in _statements(columns, targets, sizes, shape, a, b, safe=safe))


def _cuts(sizes: np.ndarray, most_rows: int, most_bytes: int) -> Iterator[tuple[int, int]]:
    """Yield runs of at most `most_rows` rows and `most_bytes` bytes, but at least one row. `sizes` is cumulative."""
    start, total = 0, len(sizes)
    while start < total:
        used = int(sizes[start - 1]) if start else 0
        end = int(np.searchsorted(sizes, used + most_bytes, side="right"))
        end = min(max(end, start + 1), start + most_rows, total)
        yield start, end
        start = end


def _statements(
    columns: _Columns,
    targets: Mapping[int, TargetPlan],
    sizes: np.ndarray,
    shape: BatchShape,
    start: int,
    end: int,
    *,
    safe: bool,
) -> Iterator[Statement]:
    target = targets[int(columns.target[start])]
    op = Op(int(columns.op[start]))
    alone = not shape.multiple_rows or op is Op.INSERT_SET
    alone = (
        alone
        or (op is Op.UPDATE and bool(columns.ordered[start]))
        or (op is Op.DELETE and (target.keyless or target.family is not None))
    )
    window = sizes[start:end] - (sizes[start - 1] if start else 0)
    for a, b in _cuts(window, 1 if alone else end - start, STATEMENT_BYTES):
        first, last = start + a, start + b
        if safe:
            yield from _safe(columns, target, op, first, last)
            continue
        keys = _keys(columns, target, op, first, last)
        upsert = op is Op.UPDATE and shape.multiple_rows and not _by_condition(columns, target, first)
        write = _sql if shape.multiple_rows else _single
        sql = write(columns, target, op, first, last)
        kind = Op.UPDATE if op is Op.UPDATE_SET else op
        values = inserts = None
        if last - first > 1 and (op is Op.INSERT or upsert):
            values = _list(columns, target, first, last, len(_insert(target)))
        if (target.locked_upserts or not upsert) and columns.made[first:last].any():
            inserts = partial(_inserts, columns, target, first, listed=upsert)
        yield Statement(sql, kind, target.id, last - first, keys=keys, upsert=upsert, inserts=inserts, values=values)


def _inserts(
    columns: _Columns, target: TargetPlan, base: int, start: int, end: int, *, listed: bool
) -> Iterator[Statement]:
    """Yield INSERTs of the rows of every UPDATE_OR_INSERT from `start` to before `end`, counted from `base`.

    Their texts are tuples where they are `listed`, assignments elsewhere.
    """
    places = base + start + np.flatnonzero(columns.made[base + start : base + end])
    op, breaks = (Op.INSERT, np.diff(places) > 1) if listed else (Op.INSERT_SET, np.diff(places) > 0)
    for run in np.split(places, np.flatnonzero(breaks) + 1):
        if len(run):
            first, last = int(run[0]), int(run[-1]) + 1
            yield Statement(_sql(columns, target, op, first, last), op, target.id, last - first)


def _by_condition(columns: _Columns, target: TargetPlan, place: int) -> bool:
    """Return whether the UPDATE at `place` finds its row by WHERE."""
    return bool(columns.ordered[place]) or target.by_condition


def _keys(columns: _Columns, target: TargetPlan, op: Op, start: int, end: int) -> Keys | None:
    if op in (Op.DELETE, Op.UPDATE_SET):
        return Keys(columns.key, target, start, end)
    if op is Op.UPDATE:
        texts = columns.old_key if columns.ordered[start] else columns.key
        return Keys(texts, target, start, end)
    return None


def _safe(columns: _Columns, target: TargetPlan, op: Op, start: int, end: int) -> Iterator[Statement]:
    """Yield the same changes in a form that may be applied any number of times."""
    if op is Op.DELETE:
        yield Statement(_sql(columns, target, op, start, end), op, target.id, end - start, end - start)
        return
    gives = start + np.flatnonzero(columns.old_key.sizes()[start:end])
    bounds = sorted({start, *gives.tolist(), end})
    for first, last in itertools.pairwise(bounds):
        old_key = columns.old_key.slice(first, first + 1)
        if old_key and old_key != columns.key.slice(first, first + 1):
            where = _where(target, old_key)
            yield Statement(b"DELETE FROM " + target.name.quoted.encode() + b" WHERE " + where, op, target.id, 0)
        yield from _replaced(columns, target, op, first, last)


def _replaced(columns: _Columns, target: TargetPlan, op: Op, start: int, end: int) -> Iterator[Statement]:
    """Yield what writes those rows, whether they are there or not."""
    if op is Op.INSERT or not _by_condition(columns, target, start):
        count, rows = end - start, columns.row.slice(start, end)
        verb = b"REPLACE" + _insert(target)[len(b"INSERT") :]
        values = _list(columns, target, start, end, len(verb))
        yield Statement(verb + rows[:-1], op, target.id, count, count, values=values)
        return
    begin = b"REPLACE INTO " + target.name.quoted.encode() + b" SET "
    for at in range(start, end):
        yield Statement(begin + columns.row.slice(at, at + 1), op, target.id, 1, 1)


def _sql(columns: _Columns, target: TargetPlan, op: Op, start: int, end: int) -> bytes:
    table = target.name.quoted.encode()
    if op is Op.DELETE:
        where = _where(target, columns.key.slice(start, end))
        return b"DELETE FROM " + table + b" WHERE " + where + (b" LIMIT 1" if target.keyless else b"")
    rows = columns.row.slice(start, end)
    if op is Op.INSERT_SET:
        return b"INSERT INTO " + table + b" SET " + rows
    if op is Op.INSERT:
        return _insert(target) + rows[:-1]
    if columns.ordered[start]:
        where = _where(target, columns.old_key.slice(start, end))
        return b"UPDATE " + table + b" SET " + rows + b" WHERE " + where + b" LIMIT 1"
    if target.by_condition or op is Op.UPDATE_SET:
        return b";".join(
            b"UPDATE %b SET %b WHERE %b"
            % (table, columns.row.slice(at, at + 1), _where(target, columns.key.slice(at, at + 1)))
            for at in range(start, end)
        )
    # A list of one row gives no count of duplicates (mysql_info), so a lone row that may be missing is named twice.
    values = rows[:-1] if end - start > 1 or target.locked_upserts else rows + rows[:-1]
    return _insert(target) + values + b" ON DUPLICATE KEY UPDATE " + _assign_values(target)


def _single(columns: _Columns, target: TargetPlan, op: Op, start: int, end: int) -> bytes:
    """Return the statement of one change, in the simplest form."""
    if op not in (Op.UPDATE, Op.UPDATE_SET, Op.DELETE):
        return _sql(columns, target, op, start, end)
    old = op is Op.UPDATE and columns.ordered[start]
    where = b" WHERE " + _where(target, (columns.old_key if old else columns.key).slice(start, end)) + b" LIMIT 1"
    table = target.name.quoted.encode()
    if op is Op.DELETE:
        return b"DELETE FROM " + table + where
    return b"UPDATE " + table + b" SET " + columns.row.slice(start, end) + where


def _insert(target: TargetPlan) -> bytes:
    columns = ",".join(quote_name(name) for name in target.columns)
    return f"INSERT INTO {target.name.quoted} ({columns}) VALUES ".encode()


def _list(columns: _Columns, target: TargetPlan, start: int, end: int, begin: int) -> ValuesList:
    """Return the place of the VALUES list of rows `start` to `end` that begins at `begin`."""
    size = int(columns.row.offsets[end] - columns.row.offsets[start])
    return ValuesList(begin, begin + size - 1, len(target.columns))


def _assign_values(target: TargetPlan) -> bytes:
    names = [quote_name(name) for name in target.columns if name not in target.key] or [quote_name(target.key[0])]
    return ",".join(f"{name}=VALUES({name})" for name in names).encode()


def _where(target: TargetPlan, keys: bytes) -> bytes:
    listed = keys[: -len(key_separator(target))]
    if len(target.key) == 1 and not target.keyless:
        return quote_name(target.key[0]).encode() + b" IN (" + bytes(listed) + b")"
    return bytes(listed)


def lock_query(keys: Keys, first: int, last: int) -> bytes:
    """Return the query that locks the rows of keys `first` to `last`, and counts them."""
    return count_query(keys, first, last) + b" FOR UPDATE"


def count_query(keys: Keys, first: int, last: int) -> bytes:
    """Return the query that counts the rows of keys `first` to `last`."""
    table = keys.target.name.quoted.encode()
    return b"SELECT COUNT(*) FROM " + table + b" WHERE " + keys.where(first, last)
