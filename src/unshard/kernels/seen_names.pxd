# cython: language_level=3
# C layout of seen_names.py.
from unshard.kernels.wire cimport Bytes


cdef class SeenNames:
    # where a name was seen last, by its hash
    cdef long long _at[1024]
    cdef int _length[1024]

    cdef void forget(self) noexcept
    cdef bint is_new(self, Bytes data, long long at, int length) noexcept
