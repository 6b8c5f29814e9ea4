# cython: language_level=3
from unshard.kernels.wire cimport Bytes

cdef unsigned int crc32_from(unsigned int crc, Bytes at, long long length) noexcept nogil
cdef bint intact(Bytes at, long long length) noexcept nogil
