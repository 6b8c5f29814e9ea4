# cython: language_level=3
# C layout of scan.py's Scanner.
from unshard.kernels.gtids cimport GtidRuns
from unshard.kernels.seen_names cimport SeenNames
from unshard.kernels.wire cimport Bytes


cdef class Scanner:
    cdef readonly long long offset, length, end, group_start, last_start
    cdef readonly int event, group_flags, state
    cdef readonly unsigned int timestamp, first_timestamp, last_timestamp
    cdef readonly long long transactions, row_events, group_rows, unpacked, group_unpacked
    cdef readonly set tables
    cdef readonly bint partial_images, inside

    cdef const unsigned char[::1] _data
    cdef Bytes _base
    cdef long long _start, _size, _budget
    cdef int _trailer
    cdef unsigned char _kinds[256]

    cdef list _group_tables
    cdef SeenNames _names
    cdef GtidRuns _gtids
    cdef readonly bint group_partial

    cdef int _step(self) except -1
    cdef int _bound(self, Bytes at, int kind) except -1
    cdef int _query(self, Bytes at) except -1
    cdef long long _body(self) noexcept
    cdef long long _used(self) noexcept
    cdef bint _may_go_on(self) noexcept
    cdef void _begin(self) noexcept
    cdef int _commit(self) except -1
    cdef int _table(self, Bytes body, long long length) except -1
