# cython: language_level=3
# How text of each charset is appended to a column as UTF-8.
from unshard.kernels.columns cimport Put

cdef Put put_of(str kind, bytes table) except? NULL
