"""Reads on at the end of a log that grows, and not again before that can give more."""

from __future__ import annotations

from dataclasses import dataclass

from unshard.model.position import Location, Position
from unshard.sync.source_log.reader import Work, WrittenLog, next_work

LARGE = 16 << 20
"""Bytes of an incomplete transaction from which on it is not read again for every bit that is added to it."""

SHARE = 10
"""The share of a large incomplete transaction by which it has to grow: a tenth. So all readings of it read at most
eleven times its bytes."""


@dataclass(frozen=True, slots=True)
class _InVain:
    """A reading from `at` that found nothing complete before `written`. `enough`: where the next one may find more."""

    at: Position
    written: Position
    enough: Position


@dataclass(slots=True)
class TailReader:
    """Reads a log that may end within a transaction. Used by one thread.

    All of a transaction is read to find its end. So nothing is read again while nothing was added. A large transaction
    is read again when it has grown by a tenth, or when the log grows no more from one call to the next.
    """

    _vain: _InVain | None = None
    _seen: Position | None = None

    def next_work(self, read: WrittenLog, at: Location, budget: int, source: str) -> Work | None:
        """Return as `reader.next_work` of all that is written; None also where that is put off. Raises as it does."""
        written = read.written
        if self._is_early(at.position, written):
            return None
        work = next_work(read.log, at, written, budget, source)
        self._vain = None if work is not None else _in_vain(at.position, written)
        return work

    def wait(self, log: WrittenLog, timeout: float) -> bool:
        """Return whether, within `timeout` seconds, as much is written as the next reading needs."""
        return self._vain is None or log.wait_for(self._vain.enough, timeout)

    def _is_early(self, at: Position, written: Position) -> bool:
        vain, before, self._seen = self._vain, self._seen, written
        if vain is None or vain.at != at or written >= vain.enough:
            return False
        return written == vain.written or written != before


def _in_vain(at: Position, written: Position) -> _InVain:
    size = written.offset - at.offset if written.file == at.file else 0
    growth = size // SHARE if size >= LARGE else 1
    return _InVain(at, written, Position(written.file, written.offset + growth))
