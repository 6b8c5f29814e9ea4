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


cdef inline Py_ssize_t columns_present(int event, Bytes body, Py_ssize_t length, Py_ssize_t* count) noexcept nogil:
    # Where the first bitmap begins; sets the number of columns. -1 for a body that is cut off.
    cdef Py_ssize_t at = 8
    if event == 39 or 30 <= event <= 32 or event >= 169:
        if length < at + 2:
            return -1
        at += u16(body + at)
    if length < at + 1:
        return -1
    count[0] = body[at]
    at += 1
    if count[0] == 252:
        if length < at + 2:
            return -1
        count[0] = u16(body + at)
        at += 2
    return at


cdef inline bint is_update(int event) noexcept nogil:
    return event == 24 or event == 31 or event == 39 or event == 167 or event == 170


cdef inline bint lacks_columns(int event, Bytes body, Py_ssize_t length) noexcept nogil:
    # Whether an image of this row event lacks a column. False for a body that is cut off: decoding refuses it.
    cdef bint update = is_update(event)
    cdef Py_ssize_t count = 0
    cdef Py_ssize_t at = columns_present(event, body, length, &count)
    cdef Py_ssize_t size = (count + 7) >> 3
    if at < 0 or length < at + (2 * size if update else size):
        return False
    return not all_present(body + at, count) or (update and not all_present(body + at + size, count))


cdef inline long long unpacked_size(int event, Bytes body, Py_ssize_t length) noexcept nogil:
    # The bytes that a compressed row event of MariaDB says its images unpack to; 0 for any other, and for a damaged one.
    cdef Py_ssize_t count = 0
    cdef Py_ssize_t at
    cdef long long size = 0
    cdef int index
    if event < 166:
        return 0
    at = columns_present(event, body, length, &count)
    if at < 0:
        return 0
    at += ((count + 7) >> 3) * (2 if is_update(event) else 1)
    if at >= length or body[at] & 0x0F > 4 or at + (body[at] & 0x0F) >= length:
        return 0
    for index in range(body[at] & 0x0F):
        size = size << 8 | body[at + 1 + index]
    return size
