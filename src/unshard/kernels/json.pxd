# cython: language_level=3
# The reader of json.py, and what it remembers of a container whose values it is in.
from libc.stdint cimport uint32_t

from unshard.kernels.columns cimport Bytes, Sink

cdef struct Container:
    Bytes start         # what its offsets count from
    uint32_t size       # in bytes, its header included: no offset goes beyond
    uint32_t header     # in bytes: no offset comes before
    uint32_t count
    uint32_t next       # the member to be written next
    bint keyed          # an object, else an array
    bint large          # offsets and sizes of four bytes, else of two

cdef Bytes read_json(Sink column, Bytes at, Bytes end) noexcept
