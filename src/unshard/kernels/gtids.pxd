# cython: language_level=3
# C layout of gtids.py.
from unshard.kernels.wire cimport Bytes


cdef int read_tagged(Bytes body, long long length, unsigned char* origin, unsigned long long* number) noexcept
cdef int read_gtid(
    int kind, Bytes event, long long length, unsigned char* origin, unsigned long long* number
) noexcept


cdef class GtidRuns:
    # the GTID of the open group, and the run that the last whole group belongs to
    cdef unsigned char _origin[48]
    cdef unsigned char _last_origin[48]
    cdef int _origin_length, _last_origin_length
    cdef unsigned long long _number, _first_number, _last_number
    cdef list _runs

    cdef bint read(self, int kind, Bytes event, long long length) noexcept
    cdef void forget(self) noexcept
    cdef int take(self) except -1
    cdef open_gtid(self)
    cdef runs(self)
    cdef int _keep(self) except -1
