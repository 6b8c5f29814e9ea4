"""The GTID set executed up to the relay's end: a file's own list at its start, plus the transactions since."""

from __future__ import annotations

import struct
from uuid import UUID

from unshard.model.gtid import GtidSet, MariadbGtidSet, MysqlGtidSet
from unshard.mysql.flavour import Server
from unshard.source.replica_protocol import HEADER_LENGTH

_PREVIOUS_GTIDS, _GTID_LIST = 35, 163
_COUNT_MASK = 0x0FFFFFFF  # the upper four bits are flags


class GtidTracker:
    """Grows by whole transactions only, so what it tells may lag but never claims too much."""

    def __init__(self, server: Server) -> None:
        self._set: GtidSet = server.gtid_set("")
        self.known = False

    @property
    def text(self) -> str:
        """The set in the server's notation; "" where the server uses no GTIDs."""
        return str(self._set)

    def begin_file(self, head: memoryview | bytes, at: int) -> None:
        """Take the list that stands near the start of a file; `head` is the file's beginning, `at` an event's offset.

        `known` stays False while the list has not come yet.
        """
        while len(head) - at >= HEADER_LENGTH:
            size = int.from_bytes(head[at + 9 : at + 13], "little")
            if size < HEADER_LENGTH or at + size > len(head):
                return
            if head[at + 4] in (_GTID_LIST, _PREVIOUS_GTIDS):
                self._set = _listed(bytes(head[at : at + size]))
                self.known = True
                return
            at += size

    def add(self, runs: list[tuple[bytes, int, int]]) -> None:
        """Add what `EventChain.take_gtids` gave."""
        if not runs:
            return
        if isinstance(self._set, MariadbGtidSet):
            self._set = self._set.add(*((*struct.unpack("<II", origin), last) for origin, _, last in runs))
        else:
            self._set = self._set.add(*((str(UUID(bytes=origin)), first, last) for origin, first, last in runs))


def _listed(event: bytes) -> GtidSet:
    """The set of a GTID_LIST event (MariaDB) or a PREVIOUS_GTIDS event (MySQL)."""
    body = event[HEADER_LENGTH:]
    if event[4] == _GTID_LIST:
        count = int.from_bytes(body[:4], "little") & _COUNT_MASK
        return MariadbGtidSet().add(*struct.iter_unpack("<IIQ", body[4 : 4 + 16 * count]))
    (origins,) = struct.unpack_from("<Q", body)
    runs: list[tuple[str, int, int]] = []
    if origins >> 56:
        return MysqlGtidSet()  # the newer form, with tags: the set then counts from this file on
    at = 8
    for _ in range(origins):
        uuid, intervals = str(UUID(bytes=body[at : at + 16])), struct.unpack_from("<Q", body, at + 16)[0]
        at += 24
        for _ in range(intervals):
            first, beyond = struct.unpack_from("<QQ", body, at)
            runs.append((uuid, first, beyond - 1))
            at += 16
    return MysqlGtidSet().add(*runs)
