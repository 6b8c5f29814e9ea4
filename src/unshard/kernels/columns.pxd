# cython: language_level=3
# One growing Arrow column in C memory, and the small moves that every value reader makes on it.
#
# A `Sink` is plain memory; the `RowSink` of rows.py owns and frees it. A reader checks every read against `end`.
from libc.stdint cimport int32_t, int64_t
from libc.stdlib cimport realloc
from libc.string cimport memcpy, memset

ctypedef unsigned char u8
ctypedef const unsigned char* Bytes

cdef enum Failure:
    TRUNCATED = 1   # the value goes beyond the end of its event
    INVALID = 2     # the bytes are no value of the type
    TOO_LARGE = 3   # the column passes what 32-bit offsets can tell
    NO_MEMORY = 4

cdef enum:
    LARGEST = 0x7FFFFFFF

cdef struct ColumnSink

# Reads one value at `at` and appends it. Gives the address after the value, or NULL with `failure` set.
# Columns of fixed `width` have room for the row already; the others ask for it with `room`.
ctypedef Bytes (*Reader)(ColumnSink* column, Bytes at, Bytes end) noexcept

# Appends `length` bytes of text at `at` as UTF-8. False with `failure` set where they are none.
ctypedef bint (*Put)(ColumnSink* column, Bytes at, Py_ssize_t length) noexcept

cdef struct ColumnSink:
    Reader read
    Put put         # of text only: how its charset becomes UTF-8
    int size        # the type's own: bytes of a length prefix, packed bytes, digits before the point
    int scale       # the type's own: digits after the point, the padded length of BINARY; JSON: see `_put_opaque`
    int width       # bytes of one value in `data`; 0 where values vary and `offsets` tell them apart
    Bytes table     # of `put`: entries of four bytes (length, UTF-8), see mysql/charsets.py
    u8* data
    Py_ssize_t length
    Py_ssize_t capacity
    int32_t* offsets
    u8* validity    # NULL until the first NULL value; then a bit a row, set where there is a value
    Py_ssize_t nulls
    int failure
    bint opaque     # of JSON: the document that is being read holds a value of a type that JSON lacks
    u8* marks       # int64: where the texts of such documents begin in `data`
    Py_ssize_t marks_length
    Py_ssize_t marks_capacity

ctypedef ColumnSink* Sink


cdef inline Bytes fail(Sink column, int failure) noexcept:
    column.failure = failure
    return NULL


cdef inline bint reserve(u8** memory, Py_ssize_t* capacity, Py_ssize_t wanted) noexcept nogil:
    # Grow by half at least, so that appending stays linear.
    cdef Py_ssize_t size = capacity[0] + (capacity[0] >> 1)
    cdef u8* grown
    if size < wanted:
        size = wanted
    if size < 256:
        size = 256
    grown = <u8*> realloc(memory[0], size)
    if grown == NULL:
        return False
    memory[0] = grown
    capacity[0] = size
    return True


cdef inline u8* room(Sink column, Py_ssize_t size) noexcept nogil:
    # The place for `size` more bytes of a varying column, which the caller then adds to `length`.
    # Never NULL with success: also an empty value needs a place.
    if column.length + size >= column.capacity:
        if column.length + size > LARGEST:
            column.failure = TOO_LARGE
            return NULL
        if not reserve(&column.data, &column.capacity, column.length + size + 1):
            column.failure = NO_MEMORY
            return NULL
    return column.data + column.length


cdef inline bint put_mark(Sink column, int64_t start) noexcept:
    # Record that the document whose text begins at `start` holds an opaque value.
    if column.marks_length + 8 > column.marks_capacity and not reserve(
        &column.marks, &column.marks_capacity, column.marks_length + 8
    ):
        column.failure = NO_MEMORY
        return False
    memcpy(column.marks + column.marks_length, &start, 8)
    column.marks_length += 8
    return True


cdef inline bint put_null(Sink column, Py_ssize_t row, Py_ssize_t row_capacity) noexcept nogil:
    # The bitmap is made at the first NULL only, with every row before it set.
    if column.validity == NULL:
        column.validity = <u8*> realloc(NULL, (row_capacity >> 3) + 8)
        if column.validity == NULL:
            column.failure = NO_MEMORY
            return False
        memset(column.validity, 0xFF, (row_capacity >> 3) + 8)
    column.validity[row >> 3] &= <u8> ~(1 << (row & 7))
    column.nulls += 1
    if column.width:
        memset(column.data + column.length, 0, column.width)
        column.length += column.width
    return True


cdef inline bint grow_rows(Sink column, Py_ssize_t rows, Py_ssize_t row_capacity) noexcept nogil:
    # Room for `row_capacity` rows in all that is sized by rows.
    cdef void* grown
    cdef Py_ssize_t kept
    if column.width:
        grown = realloc(column.data, row_capacity * column.width)
        if grown == NULL:
            column.failure = NO_MEMORY
            return False
        column.data = <u8*> grown
        column.capacity = row_capacity * column.width
    else:
        grown = realloc(column.offsets, (row_capacity + 1) * sizeof(int32_t))
        if grown == NULL:
            column.failure = NO_MEMORY
            return False
        column.offsets = <int32_t*> grown
        if rows == 0:
            column.offsets[0] = 0
    if column.validity != NULL:
        grown = realloc(column.validity, (row_capacity >> 3) + 8)
        if grown == NULL:
            column.failure = NO_MEMORY
            return False
        column.validity = <u8*> grown
        kept = rows >> 3
        if rows & 7:
            column.validity[kept] |= <u8> (0xFF << (rows & 7))
            kept += 1
        memset(column.validity + kept, 0xFF, (row_capacity >> 3) + 8 - kept)
    return True


cdef inline u8* put_digits(u8* out, unsigned int value, int count) noexcept:
    # `value` in exactly `count` digits, zeros in front.
    cdef int i = count
    while i > 0:
        i -= 1
        out[i] = <u8> (48 + value % 10)
        value //= 10
    return out + count
