# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# mypy: disallow-untyped-decorators=False, disable-error-code="valid-type,no-any-return"
"""The replica stream's inner loop: turns packets from the socket into checked binlog events, in place.

An event is accepted if its length is that of its packet, its `log_pos` says that it starts where the previous event
ended, and its CRC32 matches. MariaDB since 11.4 writes no `log_pos` (0) inside a transaction unless
`binlog_legacy_event_pos` is on. The first and last events of a transaction have theirs, so a missing event between them
is noticed. The same chain checks the events of a relay file, which has no packet headers between them.
"""

from __future__ import annotations

import zlib

import cython
from cython.cimports.libc.stdint import uint32_t, uint64_t
from cython.cimports.libc.string import memcmp, memcpy, memmove
from cython.cimports.unshard.kernels.gtids import read_tagged

MORE = 0
SPECIAL = 1
LARGE = 2
BAD_LENGTH = 3
BAD_POSITION = 4
BAD_CHECKSUM = 5

_HEADER = cython.declare(cython.int, 19)
_CRC = cython.declare(cython.int, 4)
_ARTIFICIAL = cython.declare(cython.int, 0x20)
_STANDALONE = cython.declare(cython.int, 1)

_QUERY = cython.declare(cython.int, 2)
_ROTATE = cython.declare(cython.int, 4)
_FORMAT = cython.declare(cython.int, 15)
_XID = cython.declare(cython.int, 16)
_HEARTBEAT = cython.declare(cython.int, 27)
_MYSQL_GTID = cython.declare(cython.int, 33)
_ANONYMOUS_GTID = cython.declare(cython.int, 34)
_XA_PREPARE = cython.declare(cython.int, 38)
_PAYLOAD = cython.declare(cython.int, 40)
_HEARTBEAT_V2 = cython.declare(cython.int, 41)
_TAGGED_GTID = cython.declare(cython.int, 42)
_MARIADB_GTID = cython.declare(cython.int, 162)
_MARIADB_GTID_LIST = cython.declare(cython.int, 163)
_QUERY_COMPRESSED = cython.declare(cython.int, 165)  # never a COMMIT: it is too short to be compressed

_CLOSED = cython.declare(cython.int, 0)  # no GTID waits for the end of its transaction
_AWAITING = cython.declare(cython.int, 1)  # a GTID was read, what follows is not yet known
_INSIDE = cython.declare(cython.int, 2)  # between BEGIN and its end


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _u16(at: cython.p_const_uchar) -> uint32_t:
    return at[0] | (cython.cast(uint32_t, at[1]) << 8)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _u32(at: cython.p_const_uchar) -> uint32_t:
    return _u16(at) | (_u16(at + 2) << 16)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _u64(at: cython.p_const_uchar) -> uint64_t:
    return _u32(at) | (cython.cast(uint64_t, _u32(at + 4)) << 32)


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _knows_place(kind: cython.int) -> cython.bint:
    """Return whether every server writes this event's `log_pos`.

    That is so for the first and last events of a transaction.
    """
    return kind in (_XID, _PAYLOAD, _MYSQL_GTID, _ANONYMOUS_GTID, _TAGGED_GTID, _MARIADB_GTID)


@cython.cclass
class EventChain:
    """The events of one binlog file from `position` on, each checked against the previous one.

    `position` is the byte offset in the file after the last accepted event, `checksum` whether its events end in a
    CRC32, `timestamp` the last event's time (seconds, 0 before the first), `events` the number of accepted events.
    """

    position = cython.declare(uint64_t, visibility="public")
    checksum = cython.declare(cython.bint, visibility="public")
    timestamp = cython.declare(uint32_t, visibility="readonly")
    events = cython.declare(uint64_t, visibility="readonly")
    _state: cython.int
    _origin_length: cython.int
    _origin: cython.uchar[48]
    _number: cython.ulonglong
    _run_length: cython.int
    _run_origin: cython.uchar[48]
    _run_first: cython.ulonglong
    _run_last: cython.ulonglong
    _runs: list[tuple[bytes, int, int]]

    def __init__(self, position: int = 4, checksum: bool = True) -> None:
        self.position = position
        self.checksum = checksum
        self.timestamp = 0
        self.events = 0
        self._state = _CLOSED
        self._run_length = 0
        self._runs = []

    def begin(self, position: int) -> None:
        """Continue in another file or at another position of this one. A transaction that had not ended is dropped."""
        self.position = position
        self._state = _CLOSED

    def unpack(
        self, buffer: cython.uchar[::1], view: memoryview, start: int, end: int, limit: int
    ) -> tuple[int, int, int]:
        """Strip the packet headers from `buffer[start:end]` and check the events. Returns (stop, taken, made).

        The events are then in `buffer[start:made]`, one after another; packets up to `taken` are consumed. `stop` says
        why it stopped: MORE (the next packet isn't complete), SPECIAL (the caller has to look at the packet at `taken`:
        OK byte not 0, format, rotate, heartbeat, artificial), LARGE (longer than `limit` bytes), or one of the BAD
        reasons for the packet at `taken`. `view` is the same memory as `buffer`.
        """
        at: cython.Py_ssize_t = start
        out: cython.Py_ssize_t = start
        stop_at: cython.Py_ssize_t = end
        largest: cython.Py_ssize_t = limit
        length: cython.Py_ssize_t
        verdict: cython.int = MORE
        if stop_at > buffer.shape[0] or at > stop_at or at < 0:
            raise ValueError("the range lies outside the buffer")
        if at == stop_at:
            return MORE, at, out
        data: cython.p_uchar = cython.address(buffer[0])
        while stop_at - at >= 5:
            length = _u16(data + at) | (cython.cast(cython.Py_ssize_t, data[at + 2]) << 16)
            if length > largest:
                verdict = LARGE
                break
            if length < 1 + _HEADER or data[at + 4] != 0:
                # errors and the end-of-stream packet are short, so they must be whole before they are looked at
                verdict = SPECIAL if stop_at - at >= length + 4 else MORE
                break
            if stop_at - at < length + 4:
                break
            verdict = self._check(data, view, at + 5, length - 1)
            if verdict:
                break
            memmove(data + out, data + at + 5, length - 1)
            out += length - 1
            at += length + 4
        return verdict, at, out

    def walk(self, data: cython.const[cython.uchar][::1], view: memoryview, end: int) -> int:
        """Check the events of a relay file from `position` to `end`.

        Afterwards `position` is the end of the last good event. Returns MORE (stopped at `end`, or inside an event that
        `end` cuts off), SPECIAL (the next event is a format or rotate event, for `append`) or a BAD reason.
        """
        last: cython.Py_ssize_t = end
        size: cython.Py_ssize_t
        at: cython.Py_ssize_t
        verdict: cython.int
        if last > data.shape[0]:
            raise ValueError("the range lies outside the data")
        while cython.cast(uint64_t, last) >= self.position + _HEADER:
            at = self.position
            size = _u32(cython.address(data[at]) + 9)
            if size < _HEADER:
                return BAD_LENGTH
            if size > last - at:
                return MORE
            verdict = self._check(cython.address(data[0]), view, at, size)
            if verdict:
                return verdict
        return MORE

    def append(self, event: cython.const[cython.uchar][::1]) -> int:
        """Check and accept one event of any type. Returns 0 or a BAD reason."""
        if event.shape[0] < _HEADER:
            return BAD_LENGTH
        verdict: cython.int = self._inspect(cython.address(event[0]), memoryview(event), 0, event.shape[0])
        return verdict

    def take_gtids(self) -> list[tuple[bytes, int, int]]:
        """Return the GTIDs of the transactions that ended since the last call, as runs (origin, first, last).

        `origin` is 16 bytes of server uuid and the tag (MySQL), or domain and server id, 4 bytes each, little-endian
        (MariaDB).
        """
        if self._run_length:
            self._close_run()
        runs = self._runs
        self._runs = []
        return runs

    @cython.cfunc
    @cython.exceptval(check=True)
    def _check(
        self, data: cython.p_const_uchar, view: memoryview, at: cython.Py_ssize_t, size: cython.Py_ssize_t
    ) -> cython.int:
        kind: cython.int = data[at + 4]
        if (
            kind in (_ROTATE, _FORMAT, _HEARTBEAT, _HEARTBEAT_V2)
            or _u16(data + at + 17) & _ARTIFICIAL
            or (kind == _MARIADB_GTID_LIST and _u32(data + at + 13) == 0)
        ):
            return SPECIAL
        return self._inspect(data, view, at, size)

    @cython.cfunc
    @cython.exceptval(check=True)
    def _inspect(
        self, data: cython.p_const_uchar, view: memoryview, at: cython.Py_ssize_t, size: cython.Py_ssize_t
    ) -> cython.int:
        event: cython.p_const_uchar = data + at
        if _u32(event + 9) != cython.cast(uint32_t, size):
            return BAD_LENGTH
        place: uint32_t = _u32(event + 13)
        # log_pos has 32 bits and files may be longer: it wraps, and so does the sum
        if place != cython.cast(uint32_t, self.position + size) and (place or _knows_place(event[4])):
            return BAD_POSITION
        if self.checksum:
            if size < _HEADER + _CRC:
                return BAD_LENGTH
            if cython.cast(uint32_t, zlib.crc32(view[at : at + size - _CRC])) != _u32(event + size - _CRC):
                return BAD_CHECKSUM
        self._follow(event, size)
        self.position += size
        self.events += 1
        if _u32(event):
            self.timestamp = _u32(event)
        return 0

    @cython.cfunc
    @cython.exceptval(check=True)
    def _follow(self, event: cython.p_const_uchar, size: cython.Py_ssize_t) -> cython.int:
        """Remember the GTID of the open transaction until the event that ends it."""
        kind: cython.int = event[4]
        if kind == _MARIADB_GTID and size >= _HEADER + 13:
            self._end_transaction()
            self._number = _u64(event + _HEADER)
            self._origin_length = 8
            memcpy(self._origin, event + _HEADER + 8, 4)
            memcpy(self._origin + 4, event + 5, 4)
            self._state = _AWAITING if event[_HEADER + 12] & _STANDALONE else _INSIDE
        elif kind == _MYSQL_GTID and size >= _HEADER + 25:
            self._end_transaction()
            memcpy(self._origin, event + _HEADER + 1, 16)
            self._origin_length = 16
            self._number = _u64(event + _HEADER + 17)
            self._state = _AWAITING
        elif kind == _TAGGED_GTID:
            self._end_transaction()
            trailer: cython.int = _CRC if self.checksum else 0
            # a malformed body is reported by the reader of the relay log
            self._origin_length = read_tagged(
                event + _HEADER, size - _HEADER - trailer, self._origin, cython.address(self._number)
            )
            self._state = _AWAITING if self._origin_length else _CLOSED
        elif self._state == _CLOSED:
            return 0
        elif kind in (_XID, _XA_PREPARE, _PAYLOAD, _ANONYMOUS_GTID) or (
            kind == _QUERY_COMPRESSED and self._state == _AWAITING
        ):
            self._end_transaction()
        elif kind == _QUERY:
            self._follow_query(event, size)
        return 0

    @cython.cfunc
    @cython.exceptval(check=True)
    def _follow_query(self, event: cython.p_const_uchar, size: cython.Py_ssize_t) -> cython.int:
        body: cython.Py_ssize_t = _HEADER + 13
        if size < body:
            return 0
        text: cython.Py_ssize_t = body + _u16(event + _HEADER + 11) + event[_HEADER + 8] + 1
        left: cython.Py_ssize_t = size - text - (_CRC if self.checksum else 0)
        opens: cython.bint = (left == 5 and memcmp(event + text, b"BEGIN", 5) == 0) or (
            left > 8 and memcmp(event + text, b"XA START", 8) == 0
        )
        if opens:
            self._state = _INSIDE
        elif (
            self._state == _AWAITING
            or (left == 6 and memcmp(event + text, b"COMMIT", 6) == 0)
            or (left == 8 and memcmp(event + text, b"ROLLBACK", 8) == 0)
        ):
            self._end_transaction()
        return 0

    @cython.cfunc
    @cython.exceptval(check=True)
    def _end_transaction(self) -> cython.int:
        if self._state == _CLOSED:
            return 0
        self._state = _CLOSED
        if self._run_length:
            # MariaDB's set holds one number a domain, so gaps don't break a run there
            follows: cython.bint = self._number == self._run_last + 1 or self._run_length == 8
            if (
                follows
                and self._run_length == self._origin_length
                and memcmp(self._run_origin, self._origin, self._origin_length) == 0
            ):
                self._run_last = self._number
                return 0
            self._close_run()
        self._run_length = self._origin_length
        memcpy(self._run_origin, self._origin, self._origin_length)
        self._run_first = self._run_last = self._number
        return 0

    @cython.cfunc
    @cython.exceptval(check=True)
    def _close_run(self) -> cython.int:
        origin: bytes = cython.cast(cython.p_char, self._run_origin)[: self._run_length]
        self._runs.append((origin, self._run_first, self._run_last))
        self._run_length = 0
        return 0
