"""Every event without row images, byte by byte: the layouts of MySQL 5.1 to 9 and MariaDB, and what we read in them.

Events of rows are in `test_row_event_bytes.py`. Numbers are little-endian; a *packed* integer is MySQL's with one byte
up to 250; a *serialized* one (MySQL 8.3 on) has in its first byte as many low ones as bytes follow.
"""

from __future__ import annotations

import pytest
from commented_bytes import Sample, sample
from made_events import WHERE, File
from test_row_event_bytes import ROW_SAMPLES

from support.refusals import refusal
from unshard.binlog.contents import facts
from unshard.binlog.events import BY_CODE, REFUSED
from unshard.binlog.index import walk
from unshard.binlog.query import Damaged
from unshard.errors import BinlogError

UUID = "00010203-0405-0607-0809-0a0b0c0d0e0f"

SAMPLES = [
    sample(1, """
        03 00                                              # binlog version 3
        34 2e 31 2e 30 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00  # server version, 50 bytes: 4.1.0
        00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
        00 f1 53 65                                        # created
    """),
    sample(2, """
        05 00 00 00                                        # thread 5
        00 00 00 00                                        # it took 0 seconds
        01                                                 # length of the schema's name
        00 00                                              # error code
        22 00                                              # length of the status variables, 34
        00 00 00 00 00                                     # 0: flags2
        01 00 00 00 40 00 00 00 00                         # 1: sql_mode
        06 03 73 74 64                                     # 6: catalog, std
        04 2d 00 2d 00 2d 00                               # 4: collations of client, connection and server, 45
        0c 01 73 00                                        # 12: one schema is updated, s
        80 00 00 00                                        # 128: MariaDB's microseconds
        73 00                                              # the schema's name, NUL
        54 52 55 4e 43 41 54 45 20 74                      # TRUNCATE t
    """, schema="s", sql="TRUNCATE t"),
    sample(2, """
        05 00 00 00 00 00 00 00 01 24 04 00 00             # as before, with error code 1060 and no status variables
        73 00                                              # the schema's name, NUL
        44 52 4f 50 20 54 41 42 4c 45 20 74                # DROP TABLE t
    """, schema="s", sql="DROP TABLE t", error=1060),
    sample(3, ""),  # STOP: the header is all
    sample(4, """
        04 00 00 00 00 00 00 00                            # the next file begins at 4
        62 69 6e 2e 30 30 30 30 30 32                      # its name to the end of the event: bin.000002
    """, next="bin.000002:4"),
    sample(5, """
        02                                                 # 1: LAST_INSERT_ID, 2: INSERT_ID
        11 00 00 00 00 00 00 00                            # 17
    """, INSERT_ID=17),
    sample(6, """
        05 00 00 00  00 00 00 00  00 00 00 00              # thread, seconds, lines to skip
        01 01                                              # lengths of the names of table and schema
        01 00 00 00                                        # one column
        09 00 0a 00 5c 00 00                               # field, line and escape characters, options
        01                                                 # length of the column's name
        61 00  74 00  73 00  2f 66 00                      # a, t, s, the file /f
    """),
    sample(7, """
        04 00 00 00 00 00 00 00  ea 0c                     # position and port of the source
        68 00  62 00                                       # its host and file
    """),
    sample(8, """
        05 00 00 00  00 00 00 00  00 00 00 00 01 01 01 00 00 00   # as LOAD
        01 00 00 00                                        # file 1, its first block follows the names
    """),
    sample(9, """
        01 00 00 00                                        # file 1
        31 0a                                              # its next block
    """),
    sample(10, "01 00 00 00                                # file 1 is loaded"),
    sample(11, "01 00 00 00                                # file 1 is given up"),
    sample(12, "05 00 00 00  00 00 00 00  00 00 00 00 01 01 01 00 00 00  # as LOAD, with longer separators"),
    sample(13, """
        01 00 00 00 00 00 00 00                            # both seeds of RAND()
        02 00 00 00 00 00 00 00
    """, seeds="1, 2"),
    sample(14, """
        01 00 00 00 6e                                     # the name, n
        00                                                 # it isn't NULL
        02                                                 # an integer
        2d 00 00 00                                        # collation
        08 00 00 00  fd ff ff ff ff ff ff ff               # eight bytes: -3
        00                                                 # flags: signed (written since 5.6)
    """, variable="@n", value="-3"),
    sample(14, "01 00 00 00 6e  00  01  2d 00 00 00  08 00 00 00  00 00 00 00 00 00 f8 3f  # a double: 1.5",
           variable="@n", value="1.5"),
    sample(14, "01 00 00 00 6e  00  00  2d 00 00 00  02 00 00 00  68 69  # text", variable="@n", value="hi"),
    sample(14, "01 00 00 00 6e  00  04  2d 00 00 00  04 00 00 00  02 01 81 05  # a DECIMAL(2,1): its digits, then 1.5",
           variable="@n", bytes="02018105"),
    sample(14, "01 00 00 00 6e  01                         # NULL ends here", variable="@n", value="NULL"),
    sample(16, "09 00 00 00 00 00 00 00                    # transaction 9 of the engine is committed", xid=9),
    sample(17, """
        01 00 00 00                                        # file 1
        31 0a                                              # its first block
    """),
    sample(18, """
        05 00 00 00  00 00 00 00  01  00 00  00 00         # as QUERY
        01 00 00 00                                        # file 1
        09 00 00 00  0e 00 00 00                           # where its name stands in the statement
        00                                                 # what is done with rows that are there already
        73 00  4c 4f 41 44 20 44 41 54 41                  # schema s, LOAD DATA
    """),
    sample(26, """
        01 00                                              # incident 1: events are lost
        04  6c 6f 73 74                                    # its message
    """, incident=1, message="lost"),
    sample(27, "62 69 6e 2e 31                             # the file; the position is the header's", file="bin.1"),
    sample(28, "01 02                                      # nothing that anyone has to know"),
    sample(29, """
        08                                                 # length of the statement, cut to a byte: not used
        44 45 4c 45 54 45 20 31                            # DELETE 1
    """, sql="DELETE 1"),
    sample(33, """
        01                                                 # 1: rows may be logged as statements
        00 01 02 03 04 05 06 07 08 09 0a 0b 0c 0d 0e 0f    # uuid
        11 00 00 00 00 00 00 00                            # transaction 17
    """, gtid=f"{UUID}:17"),  # MySQL 5.6 ends here
    sample(33, """
        00  00 01 02 03 04 05 06 07 08 09 0a 0b 0c 0d 0e 0f  11 00 00 00 00 00 00 00
        02                                                 # logical clock follows (MySQL 5.7 on)
        05 00 00 00 00 00 00 00                            # last_committed
        07 00 00 00 00 00 00 00                            # sequence_number
    """, gtid=f"{UUID}:17", last_committed=5, sequence_number=7),
    sample(33, """
        00  00 01 02 03 04 05 06 07 08 09 0a 0b 0c 0d 0e 0f  11 00 00 00 00 00 00 00
        02  05 00 00 00 00 00 00 00  07 00 00 00 00 00 00 00
        00 00 00 00 00 00 80                               # immediate commit time, 7 bytes (MySQL 8.0 on); the highest
                                                           # bit says that the original one follows
        00 00 00 00 00 00 00                               # original commit time
        fc 00 01                                           # length of the transaction, packed: 256
        71 38 01 80                                        # server version; highest bit: the original one follows
        71 38 01 00                                        # original server version, 80001
    """, gtid=f"{UUID}:17", last_committed=5, sequence_number=7),
    sample(34, """
        00                                                 # flags
        00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00    # no uuid
        00 00 00 00 00 00 00 00                            # no number
        02  00 00 00 00 00 00 00 00  01 00 00 00 00 00 00 00  # clock; MySQL 5.7 ends here
    """, gtid="anonymous", last_committed=0, sequence_number=1),
    sample(35, """
        01 00 00 00 00 00 00 00                            # one uuid
        00 01 02 03 04 05 06 07 08 09 0a 0b 0c 0d 0e 0f
        02 00 00 00 00 00 00 00                            # two intervals, ends not included
        01 00 00 00 00 00 00 00  06 00 00 00 00 00 00 00   # 1 to 5
        09 00 00 00 00 00 00 00  0a 00 00 00 00 00 00 00   # 9
    """, gtids=[f"{UUID}:1-5:9"]),
    sample(35, """
        01 02 00 00 00 00 00 01                            # form 1, told twice, with tags; two pairs of uuid and tag
        00 01 02 03 04 05 06 07 08 09 0a 0b 0c 0d 0e 0f  00                # no tag: length 0, serialized
        01 00 00 00 00 00 00 00  01 00 00 00 00 00 00 00  02 00 00 00 00 00 00 00
        00 01 02 03 04 05 06 07 08 09 0a 0b 0c 0d 0e 0f  04 68 69          # tag of length 2: hi
        01 00 00 00 00 00 00 00  01 00 00 00 00 00 00 00  03 00 00 00 00 00 00 00
    """, gtids=[f"{UUID}:1", f"{UUID}:hi:1-2"]),
    sample(36, """
        01                                                 # length of the server's uuid
        05 00 00 00  01                                    # thread; the GTID was given
        00 00 00 00  00 00 00 00  00 00 00 00              # lengths of snapshot, write set, read set
        30                                                 # the uuid
    """),
    sample(37, """
        76 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00   # name of the view, 40 bytes
        00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00 00
        01 00 00 00 00 00 00 00  00 00 00 00               # its number; no certification data
    """),
    sample(38, """
        01                                                 # COMMIT … ONE PHASE; 0: PREPARE
        07 00 00 00                                        # format id
        02 00 00 00  01 00 00 00                           # lengths of the two parts of the name
        68 69  62                                          # X'6869', X'62'
    """, xid="X'6869',X'62',7", one_phase=1),
    sample(40, """
        02 01 ff                                           # field 2, 1 byte, packed: compression; 255: none, 0: zstd
        03 01 13                                           # field 3: uncompressed, 19 bytes
        01 01 13                                           # field 1: size of what follows the fields
        00                                                 # end of the fields
        00 00 00 00 03 00 00 00 00 13 00 00 00 00 00 00 00 00 00      # an event, without checksum
    """, compression="none", uncompressed=19, compressed=19),
    sample(41, """
        01 05  62 69 6e 2e 31                              # field 1: the file, with its length
        02 03  fc 00 02                                    # field 2: the position, packed: 512
        00                                                 # end of the fields
    """, file="bin.1", position=512),
    sample(42, """
        02                                                 # serialized: version 1
        62                                                 # size of the body: 49
        08                                                 # fields up to 4 must be known
        00 00                                              # field 0: flags
        02                                                 # field 1: uuid, each byte serialized
        00 02 04 06 08 0a 0c 0e 10 12 14 16 18 1a 1c 1e
        04 44                                              # field 2: transaction 17, signed: the lowest bit is the sign
        06 04 68 69                                        # field 3: tag of length 2: hi
        08 14                                              # field 4: last_committed 5, signed
        0a 1c                                              # field 5: sequence_number 7, signed
        0c 01 00                                           # field 6: immediate commit time
        10 01 04                                           # field 8: length of the transaction
    """, gtid=f"{UUID}:hi:17", last_committed=5, sequence_number=7),
    sample(160, "49 4e 53 45 52 54                         # the statement to the end: INSERT", sql="INSERT"),
    sample(161, """
        05 00 00 00                                        # length of the name
        62 69 6e 2e 31                                     # the oldest file that a crash recovery needs
    """, file="bin.1"),
    sample(162, """
        11 00 00 00 00 00 00 00                            # transaction 17
        05 00 00 00                                        # domain 5; the server's id is the header's
        0c                                                 # flags: 4 transactional, 8 parallel
        00 00 00 00 00 00                                  # up to 19 bytes
    """, domain=5, number=17, flags=["transactional", "parallel"]),
    sample(162, """
        11 00 00 00 00 00 00 00  05 00 00 00
        06                                                 # flags: 2 has a commit id, 4
        2a 00 00 00 00 00 00 00                            # commit id: those with equal ones may run side by side
    """, domain=5, number=17, flags=["transactional"], commit_id=42),
    sample(162, """
        11 00 00 00 00 00 00 00  05 00 00 00
        44                                                 # flags: 64 prepares an XA transaction (128 completes it), 4
        07 00 00 00  02  01                                # format id; lengths of the two parts of the name
        68 69  62                                          # X'6869', X'62'
        02 03                                              # more flags: phases of an ALTER, 3: its number follows …
    """, domain=5, number=17, flags=["transactional", "xa prepared"], xid="X'6869',X'62',7"),
    sample(163, """
        02 00 00 10                                        # two GTIDs; the four highest bits are flags
        05 00 00 00  07 00 00 00  11 00 00 00 00 00 00 00  # domain, server, number
        00 00 00 00  01 00 00 00  02 00 00 00 00 00 00 00
    """, gtids=["5-7-17", "0-1-2"]),
    sample(164, """
        01                                                 # scheme 1
        03 00 00 00                                        # version of the key
        00 01 02 03 04 05 06 07 08 09 0a 0b                # nonce
    """, scheme=1, key_version=3),
]  # fmt: skip

FORMAT_DESCRIPTION = 15  # its bytes are in `made_events.File` and `test_index_damage`


@pytest.mark.parametrize("given", SAMPLES, ids=lambda given: f"{given.code}-{BY_CODE[given.code].name}")
def test_what_the_bytes_say_is_read(given: Sample) -> None:
    assert facts(given.code, given.body) == given.says


@pytest.mark.parametrize("given", SAMPLES, ids=lambda given: f"{given.code}-{BY_CODE[given.code].name}")
def test_no_part_of_the_bytes_reads_beyond_its_end(given: Sample) -> None:
    for length in range(len(given.body)):
        refused = refusal(Damaged, facts, given.code, given.body[:length])
        assert refused is None or str(refused)


@pytest.mark.parametrize(
    "given",
    [given for given in SAMPLES if BY_CODE[given.code].kind == REFUSED],
    ids=lambda given: BY_CODE[given.code].name,
)
def test_what_can_not_be_followed_stops_the_walk_by_name(given: Sample) -> None:
    file = File()
    at = file.event(given.code, given.body)
    data = bytes(file.data)
    with pytest.raises(BinlogError, match="BINLOG-004") as raised:
        walk(data, at, size=len(data), budget=1 << 20, checksum=True, where=WHERE)
    assert raised.value.where.position == f"mysql-bin.000001:{at}"
    assert BY_CODE[given.code].name in raised.value.message


def test_every_event_has_its_bytes_documented() -> None:
    documented = {given.code for given in (*SAMPLES, *ROW_SAMPLES)}
    assert documented | {FORMAT_DESCRIPTION} == BY_CODE.keys()
