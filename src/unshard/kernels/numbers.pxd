# cython: language_level=3
# The readers of numbers.py, one a wire type.
from unshard.kernels.columns cimport Bytes, Sink

cdef Bytes read_int8(Sink column, Bytes at, Bytes end) noexcept
cdef Bytes read_uint8(Sink column, Bytes at, Bytes end) noexcept
cdef Bytes read_int16(Sink column, Bytes at, Bytes end) noexcept
cdef Bytes read_uint16(Sink column, Bytes at, Bytes end) noexcept
cdef Bytes read_int24(Sink column, Bytes at, Bytes end) noexcept
cdef Bytes read_uint24(Sink column, Bytes at, Bytes end) noexcept
cdef Bytes read_int32(Sink column, Bytes at, Bytes end) noexcept
cdef Bytes read_uint32(Sink column, Bytes at, Bytes end) noexcept
cdef Bytes read_int64(Sink column, Bytes at, Bytes end) noexcept
cdef Bytes read_float(Sink column, Bytes at, Bytes end) noexcept
cdef Bytes read_year(Sink column, Bytes at, Bytes end) noexcept
cdef Bytes read_little_endian(Sink column, Bytes at, Bytes end) noexcept
cdef Bytes read_decimal(Sink column, Bytes at, Bytes end) noexcept
cdef Bytes put_decimal(Sink column, Bytes at, Bytes end, int whole, int scale) noexcept
