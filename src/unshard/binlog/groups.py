"""The groups of a binlog file by their headers alone: where they begin and end, and their GTIDs.

Nothing in a group is judged, and no checksum is verified: this is for groups that were judged before, or that a task
has passed. In a log without GTID events (MySQL before 5.7 with `gtid_mode` off) no group is found.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from mmap import mmap
from struct import Struct

from unshard.binlog.event_kinds import KIND_TABLE
from unshard.binlog.events import BY_CODE
from unshard.binlog.gtids import gtid_text
from unshard.binlog.headers import CHECKSUM_LENGTH, HEADER_LENGTH
from unshard.binlog.query import Damaged, read_query
from unshard.binlog.query_kind import QueryKind, classify
from unshard.kernels.scan import Scanner
from unshard.model.position import FIRST_OFFSET

Data = bytes | mmap

_LENGTH = Struct("<I")
_LENGTH_AT, _CODE_AT = 9, 4


def _codes(*kinds: str) -> frozenset[int]:
    return frozenset(code for code, event in BY_CODE.items() if event.kind in kinds)


BEGINS = _codes("mariadb_gtid", "mysql_gtid", "tagged_gtid", "anonymous_gtid")
"""Codes of the events that begin a group: each has the group's GTID, or stands for none."""
_BOUNDS = BEGINS | _codes("rotate", "stop")
_XA = _codes("xa_prepare", "payload") | frozenset({165})
"""Codes of the events of an XA transaction, and of those whose text is compressed (165: QUERY_COMPRESSED)."""
XID, QUERY = 16, 2


@dataclass(frozen=True, slots=True)
class Group:
    """A group from its GTID event at `start` to `end`; None: its end isn't in the data. `gtid` may be ""."""

    start: int
    end: int | None
    gtid: str


def group_around(data: Data, offset: int, *, size: int, checksum: bool, first: int = FIRST_OFFSET) -> Group | None:
    """Return the group of the event at `offset`; None where it is in none.

    `first` is the event from which on the group's begin is searched.
    """
    start = None
    for at, code, _ in _events(data, first, size):
        if at > offset:
            break
        if code in _BOUNDS:
            start = at if code in BEGINS else None
    if start is None:
        return None
    end = _end(data, start, size, checksum)
    return Group(start, end, _gtid(data, start, checksum)) if end is None or end > offset else None


def gtid_before(data: Data, offset: int, *, checksum: bool) -> str:
    """Return the GTID of the group in which the event before `offset` is; "" where there is none."""
    start = max((at for at, code, _ in _events(data, FIRST_OFFSET, offset) if code in BEGINS), default=None)
    return _gtid(data, start, checksum) if start is not None else ""


def next_group(data: Data, offset: int, *, size: int) -> int | None:
    """Return where the first group at or after `offset`, an event's begin, begins."""
    return next((at for at, code, _ in _events(data, offset, size) if code in BEGINS), None)


def may_be_xa(data: Data, group: Group) -> bool:
    """Return whether a group may prepare, commit or roll back an XA transaction: it shows that, or hides its text."""
    end = len(data) if group.end is None else group.end
    return any(code in _XA for _, code, _ in _events(data, group.start, end)) or b"XA " in data[group.start : end]


def _events(data: Data, start: int, size: int) -> Iterator[tuple[int, int, int]]:
    """Yield offset, code and end of the events with headers in `data[start:size]`, up to a length that can't be."""
    at = start
    while at + HEADER_LENGTH <= size:
        (length,) = _LENGTH.unpack_from(data, at + _LENGTH_AT)
        if length < HEADER_LENGTH:
            return
        yield at, data[at + _CODE_AT], at + length
        at += length


def _end(data: Data, start: int, size: int, checksum: bool) -> int | None:
    """Return where the group at `start` ends: after its commit, or before what can't be in it."""
    for at, code, end in _events(data, start, size):
        if code in _BOUNDS and at > start:
            return at
        if end > size:
            return None
        if code == XID or (code == QUERY and _ends(data[at + HEADER_LENGTH : end - CHECKSUM_LENGTH * checksum])):
            return end
    return None


def _ends(body: bytes) -> bool:
    try:
        return classify(read_query(body).sql) in (QueryKind.COMMIT, QueryKind.ROLLBACK)
    except Damaged:
        return False


def _gtid(data: Data, start: int, checksum: bool) -> str:
    (length,) = _LENGTH.unpack_from(data, start + _LENGTH_AT)
    scanner = Scanner(data, start, min(start + length, len(data)), 1, checksum, KIND_TABLE)
    try:
        scanner.run()
        return gtid_text(scanner.group_gtid())
    finally:
        scanner.close()
