# cython: language_level=3
# The readers of strings.py.
from unshard.kernels.columns cimport Bytes, Sink

cdef Bytes read_bytes(Sink column, Bytes at, Bytes end) noexcept
cdef Bytes read_padded(Sink column, Bytes at, Bytes end) noexcept
cdef Bytes read_fixed(Sink column, Bytes at, Bytes end) noexcept
cdef Bytes read_text(Sink column, Bytes at, Bytes end) noexcept
cdef Bytes read_uuid(Sink column, Bytes at, Bytes end) noexcept
cdef Bytes read_inet4(Sink column, Bytes at, Bytes end) noexcept
cdef Bytes read_inet6(Sink column, Bytes at, Bytes end) noexcept
