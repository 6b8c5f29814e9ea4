# cython: language_level=3
# C layout of partial.py's class.
from libc.stdint cimport int64_t

from unshard.kernels.columns cimport Bytes
from unshard.kernels.sink cimport RowSink


cdef class PartialSink(RowSink):
    cdef bytes before
    cdef bytes after
    cdef Py_ssize_t shown_before
    cdef Py_ssize_t shown_after
    cdef Py_ssize_t documents
    cdef readonly list diffs

    cdef Bytes read_some(self, Bytes at, Bytes end, int op, int64_t seq) noexcept
    cdef Bytes read_options(self, Bytes at, Bytes end, int64_t offset)
