# cython: language_level=3
# What malloc does with the memory of a batch once its columns are freed.
cdef extern from *:
    """
    #include <stdlib.h>
    #ifdef __GLIBC__
    #include <malloc.h>
    #endif

    static inline void keep_freed_memory(void) {
    #ifdef __GLIBC__
        static int kept = 0;
        if (!kept) {
            kept = mallopt(M_MMAP_THRESHOLD, 32 << 20) && mallopt(M_TRIM_THRESHOLD, 64 << 20);
        }
    #endif
    }
    """
    # Let the next batch have it, 64 MiB at most: given back, the system has to clear and map every page anew, which
    # takes longer than decoding into it. These are the limits that glibc moves to by itself as blocks become larger.
    # For a process that decodes, from its first sink on.
    void keep_freed_memory() noexcept
