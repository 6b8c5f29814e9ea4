# cython: language_level=3
# Integers as binlog events hold them, little-endian. No bound is checked: the caller knows the bytes are there.
ctypedef const unsigned char* Bytes

cdef inline unsigned int u16(Bytes at) noexcept nogil:
    return at[0] | <unsigned int>at[1] << 8

cdef inline unsigned int u32(Bytes at) noexcept nogil:
    return u16(at) | u16(at + 2) << 16

cdef inline unsigned long long u64(Bytes at) noexcept nogil:
    return u32(at) | <unsigned long long>u32(at + 4) << 32
