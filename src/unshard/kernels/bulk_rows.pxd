# cython: language_level=3
# What is known of a literal, and of all literals of a column.
from libc.stdint cimport uint64_t

from unshard.kernels.columns cimport Bytes

cdef struct Token:
    int form
    Bytes begin         # of the value: after the quote, where it has one
    Py_ssize_t size     # of the bytes that the literal stands for; of a number's text
    uint64_t value      # of an integer, in two's complement
    bint negative
    bint large          # an integer above 2^63 - 1
    bint escaped        # a text with backslashes

cdef struct Column:
    int forms
    int kind            # the protocol's number of the type
    bint negative
    bint large
    Py_ssize_t values   # those that are not NULL
    Py_ssize_t size     # of their bytes, each after its length
