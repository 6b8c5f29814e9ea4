# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# mypy: disallow-untyped-decorators=False
# mypy: disable-error-code="valid-type,attr-defined,has-type,var-annotated,no-any-return,no-untyped-def,no-untyped-call"
"""Parses GTID events, and collects the GTIDs of a scanned range as runs of consecutive numbers.

MySQL's GTID_TAGGED (code 42) is in the server's own serialization format:

| part | bytes |
|---|---|
| version, 1 | integer |
| size of the whole body | integer |
| last field that a reader must know | integer |
| field 0: flags | number of the field, integer |
| field 1: uuid | number of the field, 16 integers |
| field 2: transaction number | number of the field, signed integer |
| field 3: tag | number of the field, integer length, characters |
| further fields | left unread: times, versions, sizes |

An integer takes one byte more than its first byte has one bits at its low end. A signed integer has its sign in its
lowest bit. Every read is first checked against the body's end.

`GtidRuns` collects the GTIDs of a scan as runs: consecutive transactions of one origin form one run, however many they
are.
"""

from __future__ import annotations

import cython
from cython.cimports.libc.string import memcmp, memcpy
from cython.cimports.unshard.kernels.kinds import MARIADB_GTID, MYSQL_GTID
from cython.cimports.unshard.kernels.wire import Bytes, u64

UUID_LENGTH = cython.declare(cython.int, 16)
LONGEST_TAG = cython.declare(cython.int, 32)
HEADER = cython.declare(cython.int, 19)
MARIADB_BODY = cython.declare(cython.int, 19)
MYSQL_BODY = cython.declare(cython.int, 25)
VERSION = cython.declare(cython.ulonglong, 1)


@cython.cfunc
@cython.exceptval(check=False)
def _integer(at: cython.pointer(Bytes), end: Bytes, value: cython.pointer(cython.ulonglong)) -> cython.bint:
    """Read an integer and move `at` past it. Returns False if the integer goes beyond the body's end."""
    first: cython.uint
    extra: cython.int = 0
    index: cython.int
    found: cython.ulonglong
    if at[0] >= end:
        return False
    first = at[0][0]
    while extra < 8 and first >> extra & 1:
        extra += 1
    if end - at[0] < extra + 1:
        return False
    found = 0
    for index in range(extra, 0, -1):
        found = found << 8 | at[0][index]
    if extra < 7:
        # what the first byte has left of its bits are the lowest ones
        found = found << (7 - extra) | first >> (extra + 1)
    at[0] += extra + 1
    value[0] = found
    return True


@cython.cfunc
@cython.exceptval(check=False)
def _field(at: cython.pointer(Bytes), end: Bytes, number: cython.ulonglong) -> cython.bint:
    """Read the number of a field. Returns whether it is `number`."""
    found: cython.ulonglong = 0
    return _integer(at, end, cython.address(found)) and found == number


@cython.cfunc
@cython.exceptval(check=False)
def read_tagged(
    body: Bytes,
    length: cython.longlong,
    origin: cython.pointer(cython.uchar),
    number: cython.pointer(cython.ulonglong),
) -> cython.int:
    """Write uuid and tag to `origin` (room for 48 bytes), and the transaction's number to `number`.

    Returns the number of bytes written to `origin`; 0 if the body is malformed.
    """
    at: Bytes = body
    end: Bytes = body + length
    value: cython.ulonglong = 0
    index: cython.int
    tag: cython.int
    letter: cython.int
    if not _integer(cython.address(at), end, cython.address(value)) or value != VERSION:
        return 0
    if not _integer(cython.address(at), end, cython.address(value)) or value != cython.cast(cython.ulonglong, length):
        return 0
    if not _integer(cython.address(at), end, cython.address(value)):
        return 0
    if not _field(cython.address(at), end, 0) or not _integer(cython.address(at), end, cython.address(value)):
        return 0
    if not _field(cython.address(at), end, 1):
        return 0
    for index in range(UUID_LENGTH):
        if not _integer(cython.address(at), end, cython.address(value)) or value > 0xFF:
            return 0
        origin[index] = cython.cast(cython.uchar, value)
    if not _field(cython.address(at), end, 2) or not _integer(cython.address(at), end, cython.address(value)):
        return 0
    if value & 1 or value == 0:  # negative, or no transaction's number
        return 0
    number[0] = value >> 1
    if not _field(cython.address(at), end, 3) or not _integer(cython.address(at), end, cython.address(value)):
        return 0
    if not 0 < value <= cython.cast(cython.ulonglong, LONGEST_TAG) or end - at < cython.cast(cython.longlong, value):
        return 0
    tag = cython.cast(cython.int, value)
    for index in range(tag):
        letter = at[index]
        if not (97 <= letter <= 122 or letter == 95 or (index > 0 and 48 <= letter <= 57)):
            return 0
        origin[UUID_LENGTH + index] = at[index]
    return UUID_LENGTH + tag


@cython.cfunc
@cython.exceptval(check=False)
def read_gtid(
    kind: cython.int,
    event: Bytes,
    length: cython.longlong,
    origin: cython.p_uchar,
    number: cython.pointer(cython.ulonglong),
) -> cython.int:
    """Read the GTID of an event with a body of `length` bytes.

    Returns the length of its origin; 0 for a malformed body. MariaDB's origin is domain and server id, MySQL's is the
    uuid and a tag.
    """
    body: Bytes = event + HEADER
    if kind == MARIADB_GTID:
        if length < MARIADB_BODY:
            return 0
        number[0] = u64(body)
        memcpy(origin, body + 8, 4)
        memcpy(origin + 4, event + 5, 4)
        return 8
    if kind != MYSQL_GTID:
        return read_tagged(body, length, origin, number)
    if length < MYSQL_BODY:
        return 0
    memcpy(origin, body + 1, UUID_LENGTH)
    number[0] = u64(body + 17)
    return UUID_LENGTH if cython.cast(cython.longlong, number[0]) > 0 else 0


MARIADB_ORIGIN = cython.declare(cython.int, 8)


@cython.final
@cython.cclass
class GtidRuns:
    """The GTIDs of the transaction groups that `scan.Scanner` has walked over, as runs of consecutive numbers.

    `read` and `forget` concern the open group; `take` completes it. An origin is domain and server id, 4 bytes each,
    little-endian (MariaDB), or 16 bytes of server uuid and the tag (MySQL).
    """

    def __init__(self) -> None:
        self._runs = []
        self._origin_length = self._last_origin_length = 0

    @cython.cfunc
    @cython.exceptval(check=False)
    def read(self, kind: cython.int, event: Bytes, length: cython.longlong) -> cython.bint:
        """Set the GTID of the open group from an event whose body has `length` bytes.

        Returns False for a malformed body.
        """
        self._origin_length = read_gtid(kind, event, length, self._origin, cython.address(self._number))
        return self._origin_length != 0

    @cython.cfunc
    @cython.exceptval(check=False)
    def forget(self) -> cython.void:
        """Begin a group, which has no GTID so far."""
        self._origin_length = 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def take(self) -> cython.int:
        """Complete the open group: its GTID, if it has one, extends the last run or begins another."""
        if self._origin_length == 0:
            return 0
        # numbers of a MariaDB server have gaps if other domains count too; only the last one matters
        if (
            self._origin_length != self._last_origin_length
            or (self._origin_length != MARIADB_ORIGIN and self._number != self._last_number + 1)
            or memcmp(self._origin, self._last_origin, self._origin_length) != 0
        ):
            self._keep()
            self._last_origin_length = self._origin_length
            memcpy(self._last_origin, self._origin, self._origin_length)
            self._first_number = self._number
        self._last_number = self._number
        self._origin_length = 0
        return 0

    @cython.cfunc
    def open_gtid(self):
        """Return the GTID of the open group, (origin, number), or None."""
        if self._origin_length == 0:
            return None
        origin: bytes = cython.cast(cython.p_char, self._origin)[: self._origin_length]
        return (origin, self._number)

    @cython.cfunc
    def runs(self):
        """Return the runs of the complete groups, [(origin, first, last)], oldest first."""
        self._keep()
        return self._runs

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _keep(self) -> cython.int:
        """Add the current run to those that `runs` returns, and end it."""
        if self._last_origin_length != 0:
            origin: bytes = cython.cast(cython.p_char, self._last_origin)[: self._last_origin_length]
            self._runs.append((origin, self._first_number, self._last_number))
        self._last_origin_length = 0
        return 0
