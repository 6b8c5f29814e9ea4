# cython: language_level=3
# What the kernels take of sys/socket.h and poll.h.
cdef extern from "sys/socket.h" nogil:
    int MSG_DONTWAIT
    ssize_t recv(int descriptor, void* memory, size_t size, int flags)

cdef extern from "poll.h" nogil:
    short POLLIN
    struct pollfd:
        int fd
        short events
        short revents
    int poll(pollfd* waiting, unsigned long count, int milliseconds)
