# cython: language_level=3
# The readers of times.py. `scale` is the number of fraction digits.
from unshard.kernels.columns cimport Bytes, Sink

cdef Bytes read_date(Sink column, Bytes at, Bytes end) noexcept
cdef Bytes read_time(Sink column, Bytes at, Bytes end) noexcept
cdef Bytes read_datetime(Sink column, Bytes at, Bytes end) noexcept
cdef Bytes read_timestamp(Sink column, Bytes at, Bytes end) noexcept

cdef Bytes read_time_old(Sink column, Bytes at, Bytes end) noexcept
cdef Bytes read_datetime_old(Sink column, Bytes at, Bytes end) noexcept
cdef Bytes read_timestamp_old(Sink column, Bytes at, Bytes end) noexcept
cdef Bytes read_time_hires(Sink column, Bytes at, Bytes end) noexcept
cdef Bytes read_datetime_hires(Sink column, Bytes at, Bytes end) noexcept
cdef Bytes read_timestamp_hires(Sink column, Bytes at, Bytes end) noexcept
