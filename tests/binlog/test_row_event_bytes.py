"""TABLE_MAP and every event with row images, byte by byte, and the rows that we read in them."""

from __future__ import annotations

import zlib
from struct import pack
from typing import Any

import pytest
from commented_bytes import Sample, octets
from made_events import WHERE

from support.refusals import refusal
from unshard.binlog.described import describe_table, undescribed
from unshard.binlog.events import BY_CODE, REFUSED
from unshard.binlog.rows import Decoded, decode_range
from unshard.binlog.table_map import parse_table_map
from unshard.errors import BinlogError
from unshard.model.change import Op
from unshard.model.table import Index

TABLE_MAP = octets("""
    2a 00 00 00 00 00                          # table id 42
    01 00                                      # flags
    01 73 00                                   # schema s: length, name, NUL
    01 74 00                                   # table t
    03                                         # three columns, packed
    03 0f f5                                   # their types: LONG, VARCHAR, JSON
    03                                         # bytes of metadata, packed
    14 00                                      # VARCHAR: at most 20 bytes
    04                                         # JSON: a length of 4 bytes before it
    06                                         # nullable: columns 2 and 3, the lowest bit first
    01 01 80                                   # optional field 1, 1 byte: signs; column 1 is unsigned
    02 01 2d                                   # optional field 2: collation 45 for all text
    04 07  02 69 64  01 76  01 6a              # optional field 4: names, each with its length: id, v, j
    08 01 00                                   # optional field 8: column 0 is the primary key
    0c 01 e0                                   # optional field 12: all columns are visible
""")

HEAD = octets("""
    2a 00 00 00 00 00                          # table id 42
    01 00                                      # flags: 1, the last event of its statement
""")
NO_EXTRA = octets("02 00                       # version 2: no extra data, 2 bytes with this length")
NDB_EXTRA = octets("""
    05 00                                      # version 2: extra data, 5 bytes with this length
    00 02 00                                   # kind 0, of NDB: length, format
""")
PARTITION_EXTRA = octets("""
    05 00                                      # version 2 of MySQL 8.0: 5 bytes of extra data
    01 03 00                                   # kind 1: the row went to partition 3
""")
COLUMNS = octets("03                           # three columns, packed") + octets("07  # all are in the image")
AFTER_COLUMNS = octets("07                     # UPDATE: all are in the image after as well")
SEVEN = octets("""
    04                                         # NULL: column 3, the lowest bit first
    07 00 00 00                                # id 7
    02 68 69                                   # v 'hi', its length first
""")
EIGHT = octets("""
    06                                         # NULL: columns 2 and 3
    08 00 00 00                                # id 8
""")
DOCUMENT = octets("""
    00                                         # nothing is NULL
    09 00 00 00                                # id 9
    00                                         # v ''
    0d 00 00 00                                # 13 bytes of JSON
    00                                         # a small object …
    01 00  0c 00                               # … of one member, 12 bytes
    0b 00  01 00                               # its key is at 11, 1 byte
    05 01 00                                   # its value: 5, a 16-bit integer in place: 1
    61                                         # key a
""")
DIFF = (
    octets("""
    01                                         # value options: 1, JSON columns may be diffs
    01                                         # JSON columns that are: the first
    00                                         # nothing is NULL
    09 00 00 00                                # id 9
    00                                         # v ''
    09 00 00 00                                # 9 bytes of diffs
    00                                         # replace …
    03  24 2e 61                               # … what is at $.a, length first
    03  05 02 00                               # … with 3 bytes: 5, a 16-bit integer: 2
""")
    + b""
)
DIFF = DIFF.replace(b"\x0a\0\0\0", pack("<I", 9))  # operation 1, path 1 + 3, value 1 + 3

INSERTED = (7, "hi", None)
CHANGED = (8, None, None)


def packed_away(images: bytes) -> bytes:
    """MariaDB's compression: 0x80 and the number of bytes of the length, that length (big-endian), zlib."""
    return b"\x81" + pack(">B", len(images)) + zlib.compress(images)


def shapes(write: int, update: int, delete: int, extra: bytes, *, squeezed: bool = False) -> list[Sample]:
    """The three events of one version."""
    images = packed_away if squeezed else bytes
    return [
        Sample(write, HEAD + extra + COLUMNS + images(SEVEN)),
        Sample(update, HEAD + extra + COLUMNS + AFTER_COLUMNS + images(SEVEN + EIGHT)),
        Sample(delete, HEAD + extra + COLUMNS + images(SEVEN)),
    ]


READ = [
    *shapes(23, 24, 25, b""),
    *shapes(30, 31, 32, NO_EXTRA),
    *shapes(30, 31, 32, NDB_EXTRA),
    *shapes(30, 31, 32, PARTITION_EXTRA),
    *shapes(166, 167, 168, b"", squeezed=True),
    *shapes(169, 170, 171, NO_EXTRA, squeezed=True),
]
PARTIAL = Sample(39, HEAD + NO_EXTRA + COLUMNS + AFTER_COLUMNS + DOCUMENT + DIFF)
HANDLED = [given for given in (*READ, PARTIAL) if BY_CODE[given.code].kind != REFUSED]
OLD = shapes(20, 21, 22, b"")
"""Version 0, of MySQL 5.1 before its release."""

QUERY_COMPRESSED = Sample(
    165,
    octets("""
        05 00 00 00  00 00 00 00  01  00 00  00 00     # as QUERY
        73 00                                          # schema s
    """)
    + packed_away(b"TRUNCATE t"),
)

ROW_SAMPLES = [Sample(19, TABLE_MAP), QUERY_COMPRESSED, PARTIAL, *READ, *OLD]


def event(code: int, body: bytes) -> bytes:
    return pack("<IBIIIH", 0, code, 7, 19 + len(body), 0, 0) + body


def decoded(given: Sample) -> Decoded:
    table = describe_table(parse_table_map(TABLE_MAP[6:], mariadb=False))
    data = event(19, TABLE_MAP) + event(given.code, given.body)
    return decode_range(data, 0, len(data), checksum=False, wanted=lambda table_map, offset: table, where=WHERE)


def images(found: Decoded) -> list[tuple[Any, ...]]:
    ((_, batch),) = found
    columns = [column.to_pylist() for column in batch.columns]
    return [(Op(op), *row) for op, _, *row in zip(*columns, strict=True)]


def test_a_table_map_describes_its_table() -> None:
    table_map = parse_table_map(TABLE_MAP[6:], mariadb=False)
    table = describe_table(table_map)
    assert undescribed(table_map) == frozenset()
    assert [(column.name, column.definition, column.nullable) for column in table.columns] == [
        ("id", "int unsigned", False),
        ("v", "varchar", True),
        ("j", "json", True),
    ]
    assert table.indexes == (Index("PRIMARY", ("id",), (0,), unique=True),)


@pytest.mark.parametrize("given", HANDLED, ids=lambda given: BY_CODE[given.code].name)
def test_the_rows_in_the_bytes_are_read(given: Sample) -> None:
    expected = {
        "WRITE": [(Op.INSERT, *INSERTED)],
        "UPDATE": [(Op.UPDATE_BEFORE, *INSERTED), (Op.UPDATE_AFTER, *CHANGED)],
        "DELETE": [(Op.DELETE, *INSERTED)],
        "PARTIAL": [(Op.UPDATE_BEFORE, 9, "", '{"a": 1}'), (Op.UPDATE_AFTER, 9, "", '{"a": 2}')],
    }
    assert images(decoded(given)) == expected[BY_CODE[given.code].name.split("_")[0]]


@pytest.mark.parametrize("given", OLD, ids=lambda given: BY_CODE[given.code].name)
def test_the_oldest_row_events_are_refused(given: Sample) -> None:
    with pytest.raises(BinlogError, match="BINLOG-024") as raised:
        decoded(given)
    assert BY_CODE[given.code].name in raised.value.message


@pytest.mark.parametrize("given", HANDLED, ids=lambda given: BY_CODE[given.code].name)
def test_row_events_cut_anywhere_are_damaged(given: Sample) -> None:
    for length in range(len(given.body)):
        cut = Sample(given.code, given.body[:length])
        if (refused := refusal(BinlogError, decoded, cut)) is not None:
            assert refused.where.position is not None
        else:
            assert decoded(cut).changes == 0
