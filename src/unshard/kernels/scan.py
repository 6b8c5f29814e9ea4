# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
"""The header walk: finds whole transactions in binlog bytes, without a Python object for an ordinary event.

`Scanner` reads each event's header, checks length, position and CRC32, and follows the transaction groups. It returns
to `binlog/index.py` at everything that needs a decision. `binlog/events.py` gives the kind of each event code.

An event's body is read only if the whole event lies inside the data, and each read is checked against its end.
"""

from __future__ import annotations

import cython
from cython.cimports.libc.string import memcmp, memcpy
from cython.cimports.unshard.kernels import kinds
from cython.cimports.unshard.kernels.checksum import intact
from cython.cimports.unshard.kernels.gtids import GtidRuns
from cython.cimports.unshard.kernels.row_header import lacks_columns, unpacked_size
from cython.cimports.unshard.kernels.seen_names import SeenNames
from cython.cimports.unshard.kernels.wire import Bytes, u16, u32

HEADER = cython.declare(cython.int, 19)
CHECKSUM = cython.declare(cython.int, 4)
QUERY_HEADER = cython.declare(cython.int, 13)
TABLE_MAP_HEADER = cython.declare(cython.int, 8)

PLACED_ELSEWHERE = cython.declare(cython.int, 0x20 | 0x40)  # artificial, or written by a relay: log_pos isn't its own
STANDALONE = cython.declare(cython.int, 0x01)

_KINDS = (
    "refused rows table_map note xid mariadb_gtid mysql_gtid anonymous_gtid query context between_groups ignorable "
    "rotate stop tagged_gtid xa_prepare payload"
)
_REASONS = "go end budget query rotate stop refused xa unexpected bad_length bad_position bad_checksum bad_body payload"
KINDS = {name: number for number, name in enumerate(_KINDS.split())}
"""The kinds of events that the walk distinguishes, for `binlog/events.py`. The numbers are those of kinds.pxd."""

REASONS = {name: number for number, name in enumerate(_REASONS.split())}
"""The reasons for which `Scanner.run` returns. The numbers are those of kinds.pxd."""


@cython.final
@cython.cclass
class Scanner:
    """One walk over `data[start:size]`. Created, run and closed by `binlog.index.walk`.

    After `run` returned, `offset`, `event` and `length` describe the event at which it stopped (not yet walked over).
    `end` is the last boundary between groups. `transactions`, `row_events`, the timestamps (Unix seconds), `tables`,
    `partial_images` (an image lacks columns), `unpacked` (bytes of uncompressed events) and the GTIDs refer to the
    complete groups before `end`, `group_*` to the open group. `inside`: the walk began inside a group, whose GTID lies
    before it. The budget counts bytes read and bytes unpacked.
    """

    def __init__(
        self,
        data: cython.const[cython.uchar][::1],
        start: cython.longlong,
        size: cython.longlong,
        budget: cython.longlong,
        checksum: cython.bint,
        kind_of: bytes,
    ):
        if not 0 <= start <= size <= data.shape[0] or size == 0:
            raise ValueError(f"start {start}, size {size}: outside the {data.shape[0]} bytes of data")
        if len(kind_of) != 256:
            raise ValueError("one kind is needed for each of 256 event codes")
        self._data = data
        self._base = cython.address(data[0])
        self._start = self.offset = self.end = self.group_start = self.last_start = start
        self._size = size
        self._budget = budget
        self._trailer = CHECKSUM if checksum else 0
        memcpy(self._kinds, cython.cast(cython.p_char, kind_of), 256)
        self._names = SeenNames()
        self._gtids = GtidRuns()
        self.tables = set()
        self._group_tables = []
        self.inside = False
        self.transactions = self.row_events = self.group_rows = self.partial_images = self.group_partial = 0
        self.first_timestamp = self.last_timestamp = self.timestamp = self.unpacked = self.group_unpacked = 0
        self.state = kinds.OUTSIDE
        self.event = self.group_flags = self.length = 0

    def close(self) -> None:
        """Release the data, so that a mapped file can be closed while an error still references this frame."""
        self._data = None
        self._base = cython.NULL
        self._size = self.offset

    def go_on(self, data: cython.const[cython.uchar][::1]) -> None:
        """Continue with `data`, which holds the events after those walked over. `offset` counts from its first byte."""
        if data.shape[0] == 0:
            raise ValueError("no bytes to go on with")
        self._data = data
        self._base = cython.address(data[0])
        self._start = -1
        self._size = data.shape[0]
        self.offset = 0
        self._names.forget()

    def exceeds(self, size: int) -> bool:
        """Return whether the group at `offset`, unpacked to `size` bytes, needs a walk of its own."""
        return self.transactions > 0 and self._used() + size > self._budget

    def run(self) -> int:
        """Walk on until something needs a decision. Returns one of `REASONS`."""
        reason: cython.int = kinds.GO
        while reason == kinds.GO:
            reason = self._step()
        return reason

    @property
    def in_group(self) -> bool:
        """True if the event at `offset` is inside a group that needs an explicit end."""
        return self.state == kinds.OPEN

    @property
    def grouped(self) -> bool:
        """True if the event at `offset` belongs to a group that began before it."""
        return self.state != kinds.OUTSIDE

    def open_group(self) -> None:
        """Begin a group of rows at the QUERY at `offset`."""
        if self.state == kinds.OUTSIDE:
            self._begin()
        self.state = kinds.OPEN
        self.offset += self.length

    def skip(self) -> None:
        """Walk over the event at `offset` without any effect on the open group."""
        self.offset += self.length

    def close_group(self) -> None:
        """End the group with the event at `offset`. The group counts as a transaction."""
        if self.state == kinds.OUTSIDE:
            self._begin()
        self._commit()

    def take_group(self, packed: Scanner, size: int) -> None:
        """End the group with the event at `offset`, which contains the rest of the group, compressed.

        `packed` is the scanner that walked over the `size` bytes in it.
        """
        self.group_rows, self.group_partial = packed.row_events, packed.partial_images
        self._group_tables = list(packed.tables)
        self.group_unpacked = size
        self._commit()

    def drop_group_rows(self) -> None:
        """Forget the rows and tables of the open group, which was rolled back."""
        self.group_rows = self.group_partial = 0
        self._group_tables = []

    @property
    def group_tables(self):
        """Schema and name of those tables of the open group that no earlier group of this walk has."""
        return self._group_tables

    def group_gtid(self):
        """Return the GTID of the open group, (origin, number) as in `gtids`, or None."""
        return self._gtids.open_gtid()

    def gtids(self):
        """Return runs of the GTIDs of complete groups, in the form of `gtids`."""
        return self._gtids.runs()

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _step(self) -> cython.int:
        at: Bytes
        flags: cython.uint
        position: cython.uint
        kind: cython.int
        left: cython.longlong = self._size - self.offset
        used: cython.longlong = self.end - self._start + self.unpacked
        if self.state == kinds.OUTSIDE and self.transactions > 0 and used >= self._budget:
            return kinds.AT_BUDGET
        if left < HEADER:
            return kinds.AT_END
        at = self._base + self.offset
        self.event = at[4]
        self.timestamp = u32(at)
        self.length = u32(at + 9)
        if self.length < HEADER + self._trailer:
            return kinds.BAD_LENGTH
        position = u32(at + 13)
        flags = u16(at + 17)
        # log_pos has 32 bits: past 4 GiB it wraps around
        if (
            position != 0
            and not flags & PLACED_ELSEWHERE
            and position != cython.cast(cython.uint, self.offset + self.length)
        ):
            return kinds.BAD_POSITION
        if self.length > left:
            return kinds.AT_END
        if self.state != kinds.OUTSIDE and self.transactions > 0 and self._used() > self._budget:
            return kinds.AT_BUDGET
        if self._trailer != 0 and not intact(at, self.length):
            return kinds.BAD_CHECKSUM
        kind = self._kinds[self.event]
        if kind == kinds.ROWS:
            if self.state != kinds.OPEN:
                return kinds.AT_UNEXPECTED
            self.group_rows += 1
            self.group_partial |= lacks_columns(self.event, at + HEADER, self._body())
            self.group_unpacked += unpacked_size(self.event, at + HEADER, self._body())
            self.offset += self.length
            return kinds.GO
        if kind in (kinds.TABLE_MAP, kinds.NOTE):
            if not self._may_go_on():
                return kinds.AT_UNEXPECTED
            if kind == kinds.TABLE_MAP and not self._table(at + HEADER, self._body()):
                return kinds.BAD_BODY
            self.offset += self.length
            return kinds.GO
        if kind == kinds.XID:
            if not self._may_go_on():
                return kinds.AT_UNEXPECTED
            self._commit()
            return kinds.GO
        if kind == kinds.QUERY:
            return self._query(at)
        if kind == kinds.XA_PREPARE:
            return kinds.AT_XA if self.state == kinds.OPEN else kinds.AT_UNEXPECTED
        return self._bound(at, kind)

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _bound(self, at: Bytes, kind: cython.int) -> cython.int:
        """Handle the events between groups, and those that open a group."""
        if kind == kinds.REFUSED:
            return kinds.AT_REFUSED
        if kind == kinds.PAYLOAD and self.state == kinds.ANNOUNCED:
            return kinds.AT_PAYLOAD
        if kind in (kinds.IGNORABLE, kinds.CONTEXT):
            if kind == kinds.CONTEXT and self.state == kinds.OUTSIDE:
                self._begin()
                self.state = kinds.ANNOUNCED
            self.offset += self.length
            if self.state == kinds.OUTSIDE:
                self.end = self.offset
            return kinds.GO
        if self.state != kinds.OUTSIDE or kind == kinds.PAYLOAD:
            return kinds.AT_UNEXPECTED
        if kind == kinds.BETWEEN_GROUPS:
            self.offset += self.length
            self.end = self.offset
            return kinds.GO
        if kind == kinds.ROTATE:
            return kinds.AT_ROTATE
        if kind == kinds.STOP:
            return kinds.AT_STOP
        self._begin()
        self.state = kinds.ANNOUNCED
        if kind != kinds.ANONYMOUS_GTID and not self._gtids.read(kind, at, self._body()):
            return kinds.BAD_BODY
        if kind == kinds.MARIADB_GTID:
            self.group_flags = at[HEADER + 12]
            if not self.group_flags & STANDALONE:
                self.state = kinds.OPEN
        self.offset += self.length
        return kinds.GO

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _query(self, at: Bytes) -> cython.int:
        """Walk over BEGIN, COMMIT and SAVEPOINT as servers write them; return at any other text."""
        body: cython.longlong = self._body()
        skipped: cython.longlong
        length: cython.longlong
        sql: Bytes
        if body < QUERY_HEADER:
            return kinds.BAD_BODY
        skipped = QUERY_HEADER + cython.cast(cython.longlong, u16(at + HEADER + 11)) + at[HEADER + 8] + 1
        if skipped > body:
            return kinds.BAD_BODY
        sql = at + HEADER + skipped
        length = body - skipped
        if length == 6 and memcmp(sql, b"COMMIT", 6) == 0:
            if not self._may_go_on():
                return kinds.AT_UNEXPECTED
            self._commit()
            return kinds.GO
        if length == 5 and memcmp(sql, b"BEGIN", 5) == 0:
            if self.state == kinds.OPEN and self.group_rows > 0:
                return kinds.AT_UNEXPECTED
            self.open_group()
            return kinds.GO
        if length > 10 and memcmp(sql, b"SAVEPOINT ", 10) == 0 and self.state == kinds.OPEN:
            self.offset += self.length
            return kinds.GO
        return kinds.AT_QUERY

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    def _body(self) -> cython.longlong:
        """Return the bytes of the event at `offset` between its header and its checksum."""
        return self.length - HEADER - self._trailer

    @cython.cfunc
    @cython.inline
    @cython.exceptval(check=False)
    def _used(self) -> cython.longlong:
        """Return the bytes from the walk's start to the end of the event at `offset`, and those unpacked from them."""
        return self.offset + self.length - self._start + self.unpacked + self.group_unpacked

    @cython.cfunc
    @cython.exceptval(check=False)
    def _may_go_on(self) -> cython.bint:
        """Return whether a part of a group may be here.

        It may in an open group, and first in the walk (after CREATE … SELECT).
        """
        if self.state == kinds.OUTSIDE and self.offset == self._start:
            self._begin()
            self.state = kinds.OPEN
            self.inside = True
        return self.state == kinds.OPEN

    @cython.cfunc
    @cython.exceptval(check=False)
    def _begin(self) -> cython.void:
        self.group_start = self.offset
        self.group_rows = self.group_partial = self.group_unpacked = 0
        self.group_flags = 0
        self._gtids.forget()

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _commit(self) -> cython.int:
        self.transactions += 1
        self.row_events += self.group_rows
        self.partial_images |= self.group_partial
        self.unpacked += self.group_unpacked
        self.group_rows = self.group_partial = self.group_unpacked = 0
        if self._group_tables:
            self.tables.update(self._group_tables)
            self._group_tables = []
        if self.transactions == 1:
            self.first_timestamp = self.timestamp
        self.last_timestamp, self.last_start = self.timestamp, self.group_start
        self._gtids.take()
        self.state = kinds.OUTSIDE
        self.offset += self.length
        self.end = self.offset
        return 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _table(self, body: Bytes, length: cython.longlong) -> cython.int:
        """Record the table of a kinds.TABLE_MAP unless it was seen just before.

        Returns False if the names go beyond the body.
        """
        schema: cython.longlong
        name: cython.longlong
        total: cython.longlong
        if length < TABLE_MAP_HEADER + 4:
            return False
        schema = body[TABLE_MAP_HEADER]
        if TABLE_MAP_HEADER + 4 + schema > length:
            return False
        name = body[TABLE_MAP_HEADER + schema + 2]
        total = schema + name + 4
        if TABLE_MAP_HEADER + total > length:
            return False
        body += TABLE_MAP_HEADER
        if not self._names.is_new(self._base, body - self._base, cython.cast(cython.int, total)):
            return True
        self._group_tables.append((body[1 : 1 + schema], body[schema + 3 : schema + 3 + name]))
        return True
