# cython: language_level=3
# C layout of gtids.py.
from unshard.kernels.wire cimport Bytes


cdef int read_tagged(Bytes body, long long length, unsigned char* origin, unsigned long long* number) noexcept
cdef int read_gtid(
    int kind, Bytes event, long long length, unsigned char* origin, unsigned long long* number
) noexcept
