# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# mypy: disallow-untyped-decorators=False
# mypy: disable-error-code="attr-defined, has-type, no-any-return"
"""Names that were met just before, so that the same table in each transaction is no new Python object each time."""

from __future__ import annotations

import cython
from cython.cimports.libc.string import memcmp, memset
from cython.cimports.unshard.kernels.wire import Bytes

SLOTS = cython.declare(cython.int, 1024)
FNV_BASIS = cython.declare(cython.uint, 2166136261)
FNV_PRIME = cython.declare(cython.uint, 16777619)


@cython.final
@cython.cclass
class SeenNames:
    """Used by `scan.Scanner`. Keeps places in its data, not names: `forget` before these bytes are others."""

    def __init__(self) -> None:
        self.forget()

    @cython.cfunc
    @cython.exceptval(check=False)
    def forget(self) -> cython.void:
        memset(self._length, 0, cython.sizeof(self._length))

    @cython.cfunc
    @cython.exceptval(check=False)
    def is_new(self, data: Bytes, at: cython.longlong, length: cython.int) -> cython.bint:
        """Whether the `length` > 0 bytes at `at` of `data` are other ones than the last of their hash."""
        index: cython.int
        mixed: cython.uint = FNV_BASIS
        slot: cython.int
        name: Bytes = data + at
        for index in range(length):
            mixed = (mixed ^ name[index]) * FNV_PRIME
        slot = (mixed ^ mixed >> 16) % SLOTS
        if self._length[slot] == length and memcmp(data + self._at[slot], name, length) == 0:
            return False
        self._length[slot] = length
        self._at[slot] = at
        return True
