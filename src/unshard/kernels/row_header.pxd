# cython: language_level=3
# What stands before the images of a row event: table id 6, flags 2, in version 2 extra data behind its length,
# column count (packed), then a bitmap of the columns present, for an UPDATE a second one.
from unshard.kernels.wire cimport Bytes, u16


cdef inline bint all_present(Bytes bits, Py_ssize_t count) noexcept nogil:
    # Whether all `count` bits are set; what pads them means nothing.
    cdef Py_ssize_t index
    cdef int rest = (1 << (count & 7)) - 1
    for index in range(count >> 3):
        if bits[index] != 0xFF:
            return False
    return rest == 0 or (bits[count >> 3] & rest) == rest


cdef inline bint lacks_columns(int event, Bytes body, Py_ssize_t length) noexcept nogil:
    # Whether an image of this row event lacks a column. False for a body that is cut off: decoding refuses it.
    cdef bint update = event == 24 or event == 31 or event == 39 or event == 167 or event == 170
    cdef Py_ssize_t at = 8
    cdef Py_ssize_t count, size
    if event == 39 or 30 <= event <= 32 or event >= 169:
        if length < at + 2:
            return False
        at += u16(body + at)
    if length < at + 1:
        return False
    count = body[at]
    at += 1
    if count == 252:
        if length < at + 2:
            return False
        count = u16(body + at)
        at += 2
    size = (count + 7) >> 3
    if length < at + (2 * size if update else size):
        return False
    return not all_present(body + at, count) or (update and not all_present(body + at + size, count))
