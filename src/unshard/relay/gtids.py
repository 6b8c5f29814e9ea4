"""Computes the GTID set at the end of the relay log.

It is the set that a file lists near its start (PREVIOUS_GTIDS, or GTID_LIST of MariaDB), plus the transactions since.
"""

from __future__ import annotations

import struct
from collections.abc import Callable

from unshard.errors import RelayError
from unshard.model.gtid import GtidSet, MariadbGtidSet, MysqlGtidSet, origin_text
from unshard.mysql.flavour import Server
from unshard.source.replica_protocol import HEADER_LENGTH

_PREVIOUS_GTIDS, _GTID_LIST = 35, 163
_COUNT_MASK = 0x0FFFFFFF  # the upper four bits are flags
_TAGGED_FORM = 1
_HEAD_BYTES = 1 << 16
_FIRST_EVENTS = 8
"""The list is among so many events: the format event, MariaDB's event of encryption, the list."""

Run = tuple[bytes, int, int]
"""As `EventChain.take_gtids` returns them: origin, first, last."""

Head = Callable[[int], memoryview | bytes]
"""Returns the first bytes of a binlog file, as many as it is asked for, or all that there are."""


class GtidTracker:
    """The GTID set at the end of the relay log, which grows with the log.

    It grows by whole transactions only: `wrote` tells of them as soon as their last event is written, and `settle` adds
    them. So it may lag until then but never contains too much. `known` is False until the set that the file lists near
    its start has been read.
    """

    def __init__(self, server: Server) -> None:
        self._set: GtidSet = server.gtid_set("")
        self._wrote: list[Run] = []
        self.known = False

    @property
    def text(self) -> str:
        """The set in the server's notation; "" where the server uses no GTIDs."""
        return str(self._set)

    def begin_file(self, head: Head, at: int) -> None:
        """Read the list near the start of a file; `at` is its first event's offset in what `head` returns.

        `known` stays False while the list has not come yet. Raises RelayError 003 for a list that can't be read.
        """
        found = gtids_before(head, at)
        if found is not None:
            self._set, self.known = found, True

    def wrote(self, runs: list[Run]) -> None:
        """Note transactions whose last event was written: the runs that `EventChain.take_gtids` returned."""
        self._wrote += runs

    def settle(self, head: Head) -> None:
        """Bring the set to the end of what was written to the current file, which `head` reads."""
        if not self.known:
            self.begin_file(head, 0)
        runs, self._wrote = self._wrote, []
        self.add(runs)

    def add(self, runs: list[Run]) -> None:
        """Add the runs that `EventChain.take_gtids` returned."""
        if not runs:
            return
        if isinstance(self._set, MariadbGtidSet):
            self._set = self._set.add(*((*struct.unpack("<II", origin), last) for origin, _, last in runs))
        else:
            self._set = self._set.add(*((origin_text(origin), first, last) for origin, first, last in runs))


def gtids_before(head: Head, at: int) -> GtidSet | None:
    """Return the set that a binlog file lists near its start; `at` is its first event's offset in what `head` returns.

    The list may have any length. None while it has not come yet. Raises RelayError 003 for a list that can't be read.
    """
    data = head(_HEAD_BYTES)
    for _ in range(_FIRST_EVENTS):
        if len(data) - at < HEADER_LENGTH:
            return None
        end = at + int.from_bytes(data[at + 9 : at + 13], "little")
        if end < at + HEADER_LENGTH:
            return None
        if end + HEADER_LENGTH > len(data):
            data = head(end + HEADER_LENGTH)
        if end > len(data):
            return None
        if data[at + 4] in (_GTID_LIST, _PREVIOUS_GTIDS):
            try:
                return _listed(bytes(data[at:end]))
            except (struct.error, ValueError, IndexError) as error:
                raise RelayError("RELAY-003", cause=f"the list of GTIDs at {at}: {error}") from error
        at = end
    return None


def _listed(event: bytes) -> GtidSet:
    """Return the set of a GTID_LIST event (MariaDB) or a PREVIOUS_GTIDS event (MySQL)."""
    body = event[HEADER_LENGTH:]
    if event[4] == _GTID_LIST:
        count = int.from_bytes(body[:4], "little") & _COUNT_MASK
        return MariadbGtidSet().add(*struct.iter_unpack("<IIQ", body[4 : 4 + 16 * count]))
    return _previous_gtids(body)


def _previous_gtids(body: bytes) -> MysqlGtidSet:
    """Return the set of a PREVIOUS_GTIDS event, in the plain form or, where it has tags, in the newer one.

    The first eight bytes hold the number of origins and the form: the newer one has a 1 in the highest byte and in
    the lowest, the number between them. There each uuid is followed by a tag, whose length is stored doubled.
    """
    (head,) = struct.unpack_from("<Q", body)
    tagged = head >> 56 == _TAGGED_FORM
    origins = head >> 8 & 0xFFFF_FFFF_FFFF if tagged else head
    runs: list[tuple[str, int, int]] = []
    at = 8
    for _ in range(origins):
        origin = body[at : at + 16]
        at += 16
        if tagged:
            length = body[at] >> 1
            origin += body[at + 1 : at + 1 + length]
            at += 1 + length
        (intervals,) = struct.unpack_from("<Q", body, at)
        at += 8
        for first, beyond in struct.iter_unpack("<QQ", body[at : at + 16 * intervals]):
            runs.append((origin_text(origin), first, beyond - 1))
        at += 16 * intervals
    return MysqlGtidSet().add(*runs)
