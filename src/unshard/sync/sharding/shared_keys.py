"""The keys that more than one table has changed, found by their hashes in bounded memory."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

MOST_KEYS = 24_000_000
"""The most hashes in memory at a time, 10 bytes each; sorting takes as much again."""

KEPT_PART = 4
"""One part in so many of MOST_KEYS may stay in memory until the next look."""


@dataclass(slots=True)
class SharedKeys:
    """The search for key hashes that more than one table has, with at most `most` hashes in memory.

    Where there are more hashes, the caller reads its keys several times. Each pass is for one share of the hashes,
    given by their lowest bits. `begin` starts a pass, and returns False after the last one; `add` takes the hashes of a
    table, and ignores those of other shares.
    """

    most: int = MOST_KEYS
    _shares: int = 1
    _share: int = -1
    _hashes: list[np.ndarray] = field(default_factory=list)
    _tables: list[np.ndarray] = field(default_factory=list)
    _held: int = 0
    _found: list[np.ndarray] = field(default_factory=list)

    def begin(self) -> bool:
        """Start the pass for the next share of the hashes. Return False after the last one."""
        if self._share >= 0:
            hashes, tables = self._distinct()
            self._found.append(np.unique(hashes[1:][hashes[1:] == hashes[:-1]]))
            self._hashes, self._tables, self._held = [hashes], [tables], len(hashes)
        if self._share < 0 or self._shares > 1:
            self._hashes, self._tables, self._held = [], [], 0
        self._share += 1
        return self._share < self._shares

    def more(self) -> None:
        """Go on after the last share: what is added next joins the hashes in memory. Only where `whole` is true."""
        self._share, self._found = 0, []

    @property
    def whole(self) -> bool:
        """True if all hashes are in memory, and few enough to stay there."""
        return self._shares == 1 and self._held <= self.most // KEPT_PART

    def add(self, hashes: np.ndarray, table: int) -> None:
        """Add the key hashes of a table, as uint64."""
        mine = np.unique(self._of_share(hashes))
        self._hashes.append(mine)
        self._tables.append(np.full(len(mine), table, dtype=np.uint16))
        self._held += len(mine)
        if self._held > self.most:
            self._fold()

    @property
    def found(self) -> np.ndarray:
        """The hashes that more than one table has, sorted."""
        return np.unique(np.concatenate([np.zeros(0, dtype=np.uint64), *self._found]))

    def _fold(self) -> None:
        hashes, tables = self._distinct()
        while self._share == 0 and len(hashes) > self.most // 2 and hashes[0] != hashes[-1]:  # one hash can't be split
            self._shares *= 2
            kept = hashes % np.uint64(self._shares) == 0
            hashes, tables = hashes[kept], tables[kept]
        self._hashes, self._tables, self._held = [hashes], [tables], len(hashes)

    def _of_share(self, hashes: np.ndarray) -> np.ndarray:
        return hashes[hashes % np.uint64(self._shares) == self._share] if self._shares > 1 else hashes

    def _distinct(self) -> tuple[np.ndarray, np.ndarray]:
        """Return the pairs of hash and table in memory, sorted, each once."""
        hashes = np.concatenate([np.zeros(0, dtype=np.uint64), *self._hashes])
        tables = np.concatenate([np.zeros(0, dtype=np.uint16), *self._tables])
        order = np.lexsort((tables, hashes))
        hashes, tables = hashes[order], tables[order]
        new = np.ones(len(hashes), dtype=bool)
        new[1:] = (hashes[1:] != hashes[:-1]) | (tables[1:] != tables[:-1])
        return hashes[new], tables[new]
