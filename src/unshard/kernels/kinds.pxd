# cython: language_level=3
# Small numbers that the header walk goes by.

# What an event is to the walk. Zero, the default of a code that nobody listed, stops it.
cdef enum Kind:
    REFUSED = 0
    ROWS = 1
    TABLE_MAP = 2
    NOTE = 3
    XID = 4
    MARIADB_GTID = 5
    MYSQL_GTID = 6
    ANONYMOUS_GTID = 7
    QUERY = 8
    CONTEXT = 9
    BETWEEN_GROUPS = 10
    IGNORABLE = 11
    ROTATE = 12
    STOP = 13
    TAGGED_GTID = 14
    XA_PREPARE = 15
    PAYLOAD = 16

# Why `Scanner.run` handed back. Zero goes on.
cdef enum Reason:
    GO = 0
    AT_END = 1
    AT_BUDGET = 2
    AT_QUERY = 3
    AT_ROTATE = 4
    AT_STOP = 5
    AT_REFUSED = 6
    AT_XA = 7
    AT_UNEXPECTED = 8
    BAD_LENGTH = 9
    BAD_POSITION = 10
    BAD_CHECKSUM = 11
    BAD_BODY = 12
    AT_PAYLOAD = 13

# Where the walk stands: between groups; after a GTID that one QUERY has to follow; inside a group of rows.
cdef enum State:
    OUTSIDE = 0
    ANNOUNCED = 1
    OPEN = 2
