"""Which keys more than one table has changed, told from hashes of many, in bounded memory."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

MOST_KEYS = 24_000_000
"""What is held at a time, of 10 bytes each; sorting takes as much again."""


KEPT_PART = 4
"""The share of that which may stay until it is needed again."""


@dataclass(slots=True)
class SharedKeys:
    """The hashes that more than one table has. Where they are too many, the caller goes through all of them again.

    Each time it is for one share of the hashes, by their lowest bits: `begin` says whether there is one left, `add`
    takes what is found, also what belongs to another share.
    """

    most: int = MOST_KEYS
    _shares: int = 1
    _share: int = -1
    _hashes: list[np.ndarray] = field(default_factory=list)
    _tables: list[np.ndarray] = field(default_factory=list)
    _held: int = 0
    _found: list[np.ndarray] = field(default_factory=list)

    def begin(self) -> bool:
        """Be at the next share; False behind the last one."""
        if self._share >= 0:
            hashes, tables = self._distinct()
            self._found.append(np.unique(hashes[1:][hashes[1:] == hashes[:-1]]))
            self._hashes, self._tables, self._held = [hashes], [tables], len(hashes)
        if self._share < 0 or self._shares > 1:
            self._hashes, self._tables, self._held = [], [], 0
        self._share += 1
        return self._share < self._shares

    def more(self) -> None:
        """Behind the last share: what is added next belongs to what is held. Not where `whole` is false."""
        self._share, self._found = 0, []

    @property
    def whole(self) -> bool:
        """Whether all hashes are held, and few enough to be kept."""
        return self._shares == 1 and self._held <= self.most // KEPT_PART

    def add(self, hashes: np.ndarray, table: int) -> None:
        """Keys of that table, as uint64."""
        mine = np.unique(self._of_share(hashes))
        self._hashes.append(mine)
        self._tables.append(np.full(len(mine), table, dtype=np.uint16))
        self._held += len(mine)
        if self._held > self.most:
            self._fold()

    @property
    def found(self) -> np.ndarray:
        """Sorted."""
        return np.unique(np.concatenate([np.zeros(0, dtype=np.uint64), *self._found]))

    def _fold(self) -> None:
        hashes, tables = self._distinct()
        while self._share == 0 and len(hashes) > self.most // 2:
            self._shares *= 2
            kept = hashes % np.uint64(self._shares) == 0
            hashes, tables = hashes[kept], tables[kept]
        self._hashes, self._tables, self._held = [hashes], [tables], len(hashes)

    def _of_share(self, hashes: np.ndarray) -> np.ndarray:
        return hashes[hashes % np.uint64(self._shares) == self._share] if self._shares > 1 else hashes

    def _distinct(self) -> tuple[np.ndarray, np.ndarray]:
        """What is held, by hash and table, each once."""
        hashes = np.concatenate([np.zeros(0, dtype=np.uint64), *self._hashes])
        tables = np.concatenate([np.zeros(0, dtype=np.uint16), *self._tables])
        order = np.lexsort((tables, hashes))
        hashes, tables = hashes[order], tables[order]
        new = np.ones(len(hashes), dtype=bool)
        new[1:] = (hashes[1:] != hashes[:-1]) | (tables[1:] != tables[:-1])
        return hashes[new], tables[new]
