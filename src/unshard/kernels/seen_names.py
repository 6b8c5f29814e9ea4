# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True, initializedcheck=False
# mypy: disallow-untyped-decorators=False
# mypy: disable-error-code="attr-defined, has-type, no-any-return"
"""Remembers recently seen names, so that a table that recurs in each transaction needs no new Python object."""

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
    """A hash table of recently seen names, for `scan.Scanner`.

    It keeps offsets into the scanner's data and not names, so `forget` must be called before the data changes.
    """

    def __init__(self) -> None:
        self.forget()

    @cython.cfunc
    @cython.exceptval(check=False)
    def forget(self) -> cython.void:
        """Forget all names."""
        memset(self._length, 0, cython.sizeof(self._length))

    @cython.cfunc
    @cython.exceptval(check=False)
    def is_new(self, data: Bytes, at: cython.longlong, length: cython.int) -> cython.bint:
        """Return whether the `length` > 0 bytes at `at` of `data` differ from the last ones in their hash slot."""
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
