# cython: language_level=3
# C layout of sink.py's classes.
from libc.stdint cimport int64_t

from unshard.kernels.columns cimport Bytes, ColumnSink, u8


cdef class Block:
    cdef void* memory


cdef class LeftOut:
    cdef readonly int64_t events


cdef class RowSink:
    cdef public object label
    cdef readonly Py_ssize_t rows
    cdef ColumnSink* columns
    cdef Py_ssize_t count
    cdef Py_ssize_t capacity
    cdef u8* ops
    cdef int64_t* seqs
    cdef u8* marks
    cdef Py_ssize_t marks_length
    cdef Py_ssize_t marks_capacity
    cdef Py_ssize_t failed
    cdef list tables

    cdef bint grow(self) noexcept
    cdef Bytes read(self, Bytes at, Bytes end, int op, int64_t seq) noexcept
    cdef bint mark(self, int64_t offset) noexcept


cdef object hand_over(void* memory, Py_ssize_t size)
