# cython: language_level=3
# The readers of times.py. `scale` is the number of fraction digits.
from libc.stdint cimport int64_t, uint32_t

from unshard.kernels.columns cimport Bytes, Sink, u8

cdef Bytes read_date(Sink column, Bytes at, Bytes end) noexcept
cdef Bytes read_time(Sink column, Bytes at, Bytes end) noexcept
cdef Bytes read_datetime(Sink column, Bytes at, Bytes end) noexcept
cdef Bytes read_timestamp(Sink column, Bytes at, Bytes end) noexcept

# For old_times.py as well.
cdef u8* put_date(u8* out, uint32_t year, uint32_t month, uint32_t day) noexcept
cdef u8* put_clock(u8* out, uint32_t hour, uint32_t minute, uint32_t second) noexcept
cdef u8* put_fraction(u8* out, uint32_t micros, int digits) noexcept
cdef int64_t big_endian(Bytes at, int size) noexcept
cdef bint put_timestamp(Sink column, uint32_t seconds, uint32_t micros) noexcept
