# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# mypy: disallow-untyped-decorators=False
# mypy: disable-error-code="attr-defined, assignment, type-arg, no-any-return"
"""The loop from row events to Arrow columns.

`read_events` walks the events of a byte range and appends every row image to the `RowSink` of its table. No Python
object is made for a row or a value; the resolver is called once for each TABLE_MAP event.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol

import cython
from cython.cimports.cpython.buffer import Py_buffer, PyBUF_SIMPLE, PyBuffer_Release, PyObject_GetBuffer
from cython.cimports.cpython.bytes import PyBytes_AS_STRING, PyBytes_FromStringAndSize, PyBytes_GET_SIZE
from cython.cimports.libc.stdint import int64_t, uint32_t, uint64_t
from cython.cimports.libc.string import memcmp, memcpy
from cython.cimports.unshard.kernels.columns import Bytes
from cython.cimports.unshard.kernels.partial import PartialSink
from cython.cimports.unshard.kernels.row_header import all_present
from cython.cimports.unshard.kernels.sink import LeftOut, RowSink

from unshard.kernels.sink import RowFault

# An event opens with: timestamp 4, type 1, server id 4, size 4, next position 4, flags 2; all little-endian.
_HEADER = cython.declare(cython.int, 19)
_INSERT = cython.declare(cython.int, 1)  # the four as `unshard.model.change.Op`
_BEFORE = cython.declare(cython.int, 2)
_AFTER = cython.declare(cython.int, 3)
_DELETE = cython.declare(cython.int, 4)
_PARTIAL_UPDATE = cython.declare(cython.int, 39)
_PAYLOAD = cython.declare(cython.int, 40)
_COMPRESSED = cython.declare(cython.int, 166)  # MariaDB's: three of version 1, three of version 2
_COMPRESSED_V2 = cython.declare(cython.int, 169)
_LAST_COMPRESSED = cython.declare(cython.int, 171)


class Resolver(Protocol):
    """The caller's choice of the sink that collects the rows of each table.

    `parse` is called once for each distinct TABLE_MAP, `choose` at every one.
    """

    def parse(self, body: bytes, offset: int) -> Any:
        """Return the parsed value of a TABLE_MAP's body after its table id."""

    def choose(self, table_map: Any, offset: int) -> Any:
        """Return the RowSink for the table's rows, or the LeftOut that counts them."""

    def special(self, table_map: Any, before: bytes | None, after: bytes | None, diffs: bool, offset: int) -> Any:
        """Return the PartialSink for images that lack columns or (`diffs`) may contain differences of JSON documents.

        Called once for each such event of a chosen table. `before` and `after` are the event's bitmaps of the columns
        present; None for the image that an INSERT or a DELETE lacks.
        """

    def unpack(self, code: int, body: bytes, offset: int) -> bytes:
        """Return the uncompressed body of a compressed event: the events of a payload, or the body of a row event."""


@dataclass(frozen=True, slots=True)
class Counts:
    """The counts of a decoded range: row changes (an UPDATE is one), and row events."""

    changes: int
    events: int


@cython.cclass
class _Tally:
    """The counts so far. `seq` is the next free sequence number."""

    seq: int64_t
    events: int64_t


@cython.cclass
class _Mapped:
    """The table that a table id currently means."""

    body: bytes
    table_map: object
    sink: RowSink
    left_out: LeftOut


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _u32(at: Bytes) -> uint32_t:
    value: uint32_t = 0
    memcpy(cython.address(value), at, 4)
    return value


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _table_id(at: Bytes) -> uint64_t:
    value: uint64_t = 0
    memcpy(cython.address(value), at, 6)
    return value


@cython.cfunc
def _map_table(maps: dict, at: Bytes, stop: Bytes, offset: int64_t, resolver: object) -> cython.void:
    """Bind a table id. A body that was seen before under the id is not parsed again."""
    if stop - at < 8:
        raise RowFault("event", offset, "a TABLE_MAP ends within its header")
    key: object = _table_id(at)
    size: cython.Py_ssize_t = stop - at - 6
    known: _Mapped = maps.get(key)
    if (
        known is None
        or PyBytes_GET_SIZE(known.body) != size
        or memcmp(PyBytes_AS_STRING(known.body), at + 6, size) != 0
    ):
        known = _Mapped.__new__(_Mapped)
        known.body = PyBytes_FromStringAndSize(cython.cast(cython.p_char, at + 6), size)
        known.table_map = resolver.parse(known.body, offset)
        maps[key] = known
    choice: object = resolver.choose(known.table_map, offset)
    known.sink = choice if isinstance(choice, RowSink) else None
    known.left_out = None if isinstance(choice, RowSink) else choice


@cython.cfunc
def _read_rows(
    mapped: _Mapped,
    resolver: object,
    kind: cython.int,
    at: Bytes,
    stop: Bytes,
    offset: int64_t,
    seq: int64_t,
) -> int64_t:
    """Read all rows of one event, from the column count on. Returns the next free `seq`."""
    sink: RowSink = mapped.sink
    count: cython.Py_ssize_t = at[0] if stop - at > 0 else 0
    if stop - at > 3 and at[0] == 252:  # counts above 250 take two more bytes
        count = at[1] | (at[2] << 8)
        at += 2
    at += 1
    if at > stop or count != sink.count:
        raise RowFault("event", offset, f"rows of {count} columns for a TABLE_MAP of {sink.count}")
    update: cython.bint = kind == 24 or kind == 31 or kind == _PARTIAL_UPDATE
    op: cython.int = _BEFORE if update else _INSERT if kind == 23 or kind == 30 else _DELETE
    size: cython.Py_ssize_t = (count + 7) >> 3
    second: Bytes = at + size if update else at
    if stop - second < size:
        raise RowFault("event", offset, "a row event ends within its header")
    if kind == _PARTIAL_UPDATE or not all_present(at, count) or not all_present(second, count):
        before: object = None if op == _INSERT else PyBytes_FromStringAndSize(cython.cast(cython.p_char, at), size)
        after: object = None if op == _DELETE else PyBytes_FromStringAndSize(cython.cast(cython.p_char, second), size)
        special: PartialSink = resolver.special(mapped.table_map, before, after, kind == _PARTIAL_UPDATE, offset)
        return _read_special(special, op, kind == _PARTIAL_UPDATE, second + size, stop, offset, seq)
    at = second + size
    if not sink.mark(offset):
        raise MemoryError
    while at < stop:
        at = sink.read(at, stop, op, seq)
        if at != cython.NULL and update:
            at = sink.read(at, stop, _AFTER, seq)
        if at == cython.NULL:
            raise sink.fault(offset)
        seq += 1
    return seq


@cython.cfunc
def _read_special(
    sink: PartialSink,
    op: cython.int,
    options: cython.bint,
    at: Bytes,
    stop: Bytes,
    offset: int64_t,
    seq: int64_t,
) -> int64_t:
    """Read as `_read_rows`, for images of some columns, and for after images that begin with value options."""
    if (sink.shown_after if op == _INSERT else sink.shown_before) == 0:
        raise RowFault("image", offset, "its row images hold no column", sink)
    if not sink.mark(offset):
        raise MemoryError
    while at < stop:
        at = sink.read_some(at, stop, op, seq)
        if at != cython.NULL and op == _BEFORE:
            if options:
                at = sink.read_options(at, stop, offset)
            if at != cython.NULL:
                at = sink.read_some(at, stop, _AFTER, seq)
        if at == cython.NULL:
            raise sink.fault(offset)
        seq += 1
    return seq


@cython.cfunc
def _rows_header(kind: cython.int, at: Bytes, stop: Bytes, offset: int64_t) -> Bytes:
    """Return the address of the column count: after table id 6, flags 2 and, in version 2, the extra data."""
    if stop - at < 10:
        raise RowFault("event", offset, "a row event ends within its header")
    if kind < 30:
        return at + 8
    extra: cython.int = at[8] | (at[9] << 8)  # counts itself
    if extra < 2 or stop - at - 8 < extra:
        raise RowFault("event", offset, "a row event ends within its header")
    return at + 8 + extra


def read_events(
    data: object,
    start: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    tail: cython.int,
    passed: bytes,
    resolver: Resolver,
    seq_base: cython.longlong,
    maps: tuple[int, ...] = (),
) -> Counts:
    """Decode the events of `data[start:end]` into the sinks that `resolver` returns.

    `tail` is the length of the checksum after each event. `passed` has a 1 at the number of every event type that has
    no rows and may be skipped. `maps` are offsets of TABLE_MAP events before `start` that the first rows need. Raises
    RowFault; the sinks can't be used after that.
    """
    view = cython.declare(Py_buffer)
    if len(passed) != 256:
        raise ValueError("one byte for each event type")
    PyObject_GetBuffer(data, cython.address(view), PyBUF_SIMPLE)
    try:
        if not 0 <= start <= end <= view.len:
            raise RowFault("event", start, f"the range {start}-{end} is not within the file's {view.len} bytes")
        allowed: Bytes = cython.cast(Bytes, PyBytes_AS_STRING(passed))
        known: dict = {}
        for before in maps:
            _map_before(known, cython.cast(Bytes, view.buf), before, start, tail, resolver)
        tally: _Tally = _Tally.__new__(_Tally)
        tally.seq = seq_base
        _walk(cython.cast(Bytes, view.buf), start, end, tail, allowed, resolver, tally, known, -1)
        return Counts(tally.seq - seq_base, tally.events)
    finally:
        PyBuffer_Release(cython.address(view))


@cython.cfunc
def _map_before(
    maps: dict, base: Bytes, offset: cython.Py_ssize_t, start: cython.Py_ssize_t, tail: cython.int, resolver: object
) -> cython.void:
    """Bind the table of the TABLE_MAP event at `offset`, which lies before the range."""
    size: cython.Py_ssize_t = _u32(base + offset + 9) if 0 <= offset <= start - _HEADER else 0
    if size < _HEADER + tail or size > start - offset or base[offset + 4] != 19:
        raise RowFault("event", offset, "no TABLE_MAP event stands there")
    _map_table(maps, base + offset + _HEADER, base + offset + size - tail, offset, resolver)


@cython.cfunc
def _unpacked(resolver: object, kind: cython.int, at: Bytes, stop: Bytes, offset: int64_t) -> bytes:
    """Return the uncompressed form of the bytes between `at` and `stop`."""
    return resolver.unpack(kind, PyBytes_FromStringAndSize(cython.cast(cython.p_char, at), stop - at), offset)


@cython.cfunc
def _walk(
    base: Bytes,
    start: cython.Py_ssize_t,
    end: cython.Py_ssize_t,
    tail: cython.int,
    passed: Bytes,
    resolver: object,
    tally: _Tally,
    maps: dict,
    outer: int64_t,
) -> object:
    """Decode the events of `base[start:end]`. `outer` is the offset of the payload that contained them, or -1."""
    mapped: _Mapped
    offset: cython.Py_ssize_t = start
    place: int64_t  # of the event in the file
    size: cython.Py_ssize_t
    kind: cython.int
    at: Bytes
    stop: Bytes
    plain: bytes
    while offset < end:
        place = offset if outer < 0 else outer
        at = base + offset
        size = _u32(at + 9) if end - offset >= _HEADER else 0
        if size < _HEADER + tail or size > end - offset:
            raise RowFault("event", place, f"an event of {size} bytes does not fit before {end}")
        kind = at[4]
        stop = at + size - tail
        at += _HEADER
        if kind == 19:
            _map_table(maps, at, stop, place, resolver)
        elif 23 <= kind <= 25 or 30 <= kind <= 32 or kind == _PARTIAL_UPDATE or _COMPRESSED <= kind <= _LAST_COMPRESSED:
            if stop - at < 6:
                raise RowFault("event", place, "a row event ends within its header")
            mapped = maps.get(_table_id(at))
            if mapped is None:
                raise RowFault("unmapped", place, f"table id {_table_id(at)} is not mapped")
            if mapped.sink is None:
                mapped.left_out.events += 1
            else:
                if kind >= _COMPRESSED:
                    plain = _unpacked(resolver, kind, at, stop, place)
                    at = cython.cast(Bytes, PyBytes_AS_STRING(plain))
                    stop = at + PyBytes_GET_SIZE(plain)
                    kind -= _COMPRESSED - 23 if kind < _COMPRESSED_V2 else _COMPRESSED_V2 - 30
                at = _rows_header(kind, at, stop, place)
                tally.seq = _read_rows(mapped, resolver, kind, at, stop, place, tally.seq)
                tally.events += 1
        elif kind == _PAYLOAD and outer < 0:
            plain = _unpacked(resolver, kind, at, stop, place)
            at = cython.cast(Bytes, PyBytes_AS_STRING(plain))
            _walk(at, 0, PyBytes_GET_SIZE(plain), 0, passed, resolver, tally, {}, place)
        elif not passed[kind]:
            raise RowFault("type", place, str(kind))
        offset += size
    return None
