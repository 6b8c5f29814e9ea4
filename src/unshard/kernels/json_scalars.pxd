# cython: language_level=3
# The writer of json_scalars.py.
from unshard.kernels.columns cimport Bytes, Sink

cdef Py_ssize_t put_scalar(Sink column, int kind, Bytes at, Bytes end) noexcept
