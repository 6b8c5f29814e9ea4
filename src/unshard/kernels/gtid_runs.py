# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# mypy: disallow-untyped-decorators=False
# mypy: disable-error-code="attr-defined, has-type, var-annotated, no-any-return, no-untyped-def, no-untyped-call"
"""The GTIDs of a walk as runs: groups that follow each other in one origin are one run, whatever their number."""

from __future__ import annotations

import cython
from cython.cimports.libc.string import memcmp, memcpy
from cython.cimports.unshard.kernels.gtids import read_gtid
from cython.cimports.unshard.kernels.wire import Bytes

MARIADB_ORIGIN = cython.declare(cython.int, 8)


@cython.final
@cython.cclass
class GtidRuns:
    """Used by `scan.Scanner`: `read` and `forget` tell of the open group, `take` that it is whole.

    An origin is domain and server id, 4 bytes each, little-endian (MariaDB), or 16 bytes of server uuid and the tag
    (MySQL).
    """

    def __init__(self) -> None:
        self._runs = []
        self._origin_length = self._last_origin_length = 0

    @cython.cfunc
    @cython.exceptval(check=False)
    def read(self, kind: cython.int, event: Bytes, length: cython.longlong) -> cython.bint:
        """The open group has the GTID of this event, whose body has `length` bytes; False for a body that can't be."""
        self._origin_length = read_gtid(kind, event, length, self._origin, cython.address(self._number))
        return self._origin_length != 0

    @cython.cfunc
    @cython.exceptval(check=False)
    def forget(self) -> cython.void:
        """A group begins, without a GTID so far."""
        self._origin_length = 0

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def take(self) -> cython.int:
        """The open group is whole: its GTID, if it has one, goes on with the last run or begins another."""
        if self._origin_length == 0:
            return 0
        # a MariaDB server's numbers have gaps where other domains count too: only the last one matters
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
        """The GTID of the open group, (origin, number), or None."""
        if self._origin_length == 0:
            return None
        origin: bytes = cython.cast(cython.p_char, self._origin)[: self._origin_length]
        return (origin, self._number)

    @cython.cfunc
    def runs(self):
        """Those of the whole groups, [(origin, first, last)], oldest first."""
        self._keep()
        return self._runs

    @cython.cfunc
    @cython.exceptval(-1, check=False)
    def _keep(self) -> cython.int:
        """Move the run that ends here to where `runs` reads it."""
        if self._last_origin_length != 0:
            origin: bytes = cython.cast(cython.p_char, self._last_origin)[: self._last_origin_length]
            self._runs.append((origin, self._first_number, self._last_number))
        self._last_origin_length = 0
        return 0
