# cython: language_level=3
# The writers of json_text.py.
from libc.stdint cimport int64_t, uint64_t

from unshard.kernels.columns cimport Bytes, Sink

cdef bint put_raw(Sink column, Bytes text, Py_ssize_t size) noexcept
cdef bint put_quoted(Sink column, Bytes text, Py_ssize_t size) noexcept
cdef bint put_number(Sink column, uint64_t value, bint negative) noexcept
cdef bint put_signed(Sink column, int64_t value) noexcept
cdef bint put_double(Sink column, double value) noexcept
