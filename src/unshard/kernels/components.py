# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
# mypy: disallow-untyped-decorators=False
# mypy: disable-error-code="valid-type"
"""Connected components: a disjoint-set structure over numbers, joined if they share a hash.

Step *causality* uses it.
"""

from __future__ import annotations

import cython
import numpy as np
from cython.cimports.libc.stdint import int32_t, uint64_t


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _root(parents: int32_t[::1], member: int32_t) -> int32_t:
    """Return the smallest number of the member's component. Halves the path on the way."""
    while parents[member] != member:
        parents[member] = parents[parents[member]]
        member = parents[member]
    return member


@cython.cfunc
@cython.inline
@cython.exceptval(check=False)
def _unite(parents: int32_t[::1], one: int32_t, other: int32_t) -> cython.void:
    """Join two components. A component is named by its smallest member, in whatever order its parts are joined."""
    one = _root(parents, one)
    other = _root(parents, other)
    if one < other:
        parents[other] = one
    else:
        parents[one] = other


@cython.cfunc
def _check(members: cython.const[cython.int][::1], count: cython.Py_ssize_t) -> cython.void:
    index: cython.Py_ssize_t
    for index in range(members.shape[0]):
        if members[index] < 0 or members[index] >= count:
            raise ValueError("a member is out of range")


def join_pairs(
    parents: int32_t[::1], ones: cython.const[cython.int][::1], others: cython.const[cython.int][::1]
) -> None:
    """Join `ones[i]` with `others[i]`. `parents` begins as 0, 1, 2, … and is changed in place.

    Raises ValueError for lengths that differ and for a member that is no index of `parents`.
    """
    index: cython.Py_ssize_t
    if ones.shape[0] != others.shape[0]:
        raise ValueError("pairs of different lengths")
    _check(ones, parents.shape[0])
    _check(others, parents.shape[0])
    for index in range(ones.shape[0]):
        _unite(parents, ones[index], others[index])


def join_equal(
    parents: int32_t[::1],
    members: cython.const[cython.int][::1],
    hashes: cython.const[cython.ulonglong][::1],
    known: cython.const[cython.uchar][::1],
) -> None:
    """Join all members whose `hashes` are equal. Entries whose `known` is 0 are not joined. Raises as `join_pairs`."""
    count: cython.Py_ssize_t = members.shape[0]
    if hashes.shape[0] != count or known.shape[0] != count:
        raise ValueError("columns of different lengths")
    _check(members, parents.shape[0])
    size: cython.Py_ssize_t = 16
    while size < 2 * count:
        size *= 2
    slots: uint64_t[::1] = np.empty(size, dtype=np.uint64)
    owners: int32_t[::1] = np.full(size, -1, dtype=np.int32)
    mask: uint64_t = cython.cast(uint64_t, size - 1)
    index: cython.Py_ssize_t
    at: uint64_t
    for index in range(count):
        if not known[index]:
            continue
        at = hashes[index] & mask
        while owners[at] >= 0 and slots[at] != hashes[index]:
            at = (at + 1) & mask
        if owners[at] < 0:
            slots[at] = hashes[index]
            owners[at] = members[index]
        elif owners[at] != members[index]:
            _unite(parents, owners[at], members[index])


def settle(parents: int32_t[::1]) -> None:
    """Make every entry of `parents` the smallest member of its component."""
    index: cython.Py_ssize_t
    for index in range(parents.shape[0]):
        parents[index] = _root(parents, cython.cast(int32_t, index))
