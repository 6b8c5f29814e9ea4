# cython: language_level=3
# Writers of SQL literals: one value of an Arrow column each.
from libc.stdint cimport int32_t

from unshard.kernels.columns cimport Bytes, u8

cdef struct Text:
    u8* data
    Py_ssize_t length
    Py_ssize_t capacity

cdef struct Piece

# Append the literal of value number `index` (from the start of the buffers). False where memory is out or the value
# has no literal (NaN, infinity), True otherwise. Never asked for a NULL.
ctypedef bint (*Writer)(Piece* piece, Py_ssize_t index, Text* text) noexcept

cdef struct Piece:
    Writer write
    Bytes values        # of fixed width, or the bytes that `offsets` speak of
    const int32_t* offsets
    Bytes validity      # NULL where no value is NULL
    Py_ssize_t first    # the slice's first value in the buffers
    bint nothing        # every value is NULL
    Bytes prefix
    Py_ssize_t prefix_size

cdef bint write_int8(Piece* piece, Py_ssize_t index, Text* text) noexcept
cdef bint write_int16(Piece* piece, Py_ssize_t index, Text* text) noexcept
cdef bint write_int32(Piece* piece, Py_ssize_t index, Text* text) noexcept
cdef bint write_int64(Piece* piece, Py_ssize_t index, Text* text) noexcept
cdef bint write_uint8(Piece* piece, Py_ssize_t index, Text* text) noexcept
cdef bint write_uint16(Piece* piece, Py_ssize_t index, Text* text) noexcept
cdef bint write_uint32(Piece* piece, Py_ssize_t index, Text* text) noexcept
cdef bint write_uint64(Piece* piece, Py_ssize_t index, Text* text) noexcept
cdef bint write_float(Piece* piece, Py_ssize_t index, Text* text) noexcept
cdef bint write_double(Piece* piece, Py_ssize_t index, Text* text) noexcept
cdef bint write_bare(Piece* piece, Py_ssize_t index, Text* text) noexcept
cdef bint write_quoted(Piece* piece, Py_ssize_t index, Text* text) noexcept
cdef bint write_binary(Piece* piece, Py_ssize_t index, Text* text) noexcept
cdef bint append(Text* text, Bytes data, Py_ssize_t size) noexcept
