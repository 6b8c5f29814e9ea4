# cython: language_level=3
# C layout of scan.py's Scanner.
from unshard.kernels.wire cimport Bytes


cdef class Scanner:
    cdef readonly long long offset, length, end, group_start, last_start
    cdef readonly int event, group_flags, state
    cdef readonly unsigned int timestamp, first_timestamp, last_timestamp
    cdef readonly long long transactions, row_events, group_rows, unpacked, group_unpacked
    cdef readonly set tables
    cdef readonly bint partial_images

    cdef const unsigned char[::1] _data
    cdef Bytes _base
    cdef long long _start, _size, _budget
    cdef int _trailer
    cdef unsigned char _kinds[256]

    # tables: those of the open group, and where a name was seen last, by its hash
    cdef list _group_tables
    cdef readonly bint group_partial
    cdef long long _slot_at[1024]
    cdef int _slot_length[1024]

    # the GTID of the open group, and the run of GTIDs that the last whole group belongs to
    cdef unsigned char _origin[48]
    cdef unsigned char _last_origin[48]
    cdef int _origin_length, _last_origin_length
    cdef unsigned long long _number, _first_number, _last_number
    cdef list _runs

    cdef int _step(self) except -1
    cdef int _bound(self, Bytes at, int kind) except -1
    cdef int _query(self, Bytes at) except -1
    cdef long long _body(self) noexcept
    cdef long long _used(self) noexcept
    cdef bint _may_go_on(self) noexcept
    cdef void _begin(self) noexcept
    cdef int _commit(self) except -1
    cdef int _keep_gtid(self) except -1
    cdef int _table(self, Bytes body, long long length) except -1
