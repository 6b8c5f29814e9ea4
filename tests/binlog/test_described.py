"""What a TABLE_MAP alone tells of a table, with and without its optional fields, written by a real server."""

from __future__ import annotations

from struct import unpack_from

import pytest
from captured import Captured, capture, rows_of

from unshard.binlog.described import describe_table, undescribed
from unshard.binlog.rows import decode_range
from unshard.binlog.table_map import TableMap, parse_table_map
from unshard.binlog.table_metadata import MetadataReader, Optional, read_optional
from unshard.errors import BinlogError, Where
from unshard.model.change import Op
from unshard.model.table import Index, Table, TableName
from unshard.testing.mariadb_server import MariadbServer

pytestmark = pytest.mark.server

CREATE = (
    "CREATE TABLE t (id BIGINT UNSIGNED NOT NULL, n INT, price DECIMAL(10,3) UNSIGNED, at DATETIME(3),"
    " name VARCHAR(40) CHARACTER SET latin1, fixed CHAR(20) CHARACTER SET gbk, raw BINARY(7), note TEXT,"
    " body MEDIUMBLOB, flags BIT(13), y YEAR, colour ENUM('rot','grün') CHARACTER SET latin1, parts SET('a','b'),"
    " place POINT, PRIMARY KEY (n, name(5), id))"
)
ROW = (
    "(18446744073709551615,-2,3.5,'2020-01-02 03:04:05.678','é','字',x'01','ü',x'ff',b'101',1999,'grün','a,b',"
    "POINT(1,2))"
)


def logged(server: MariadbServer, schema: str, metadata: str) -> Captured:
    setting = f"SET GLOBAL binlog_row_metadata = {metadata}"
    try:
        return capture(server, schema, [CREATE, setting], [f"INSERT INTO t VALUES {ROW}"])
    finally:
        server.query("SET GLOBAL binlog_row_metadata = NO_LOG")


def table_map(captured: Captured) -> TableMap:
    at = captured.start
    while captured.data[at + 4] != 19:
        at += unpack_from("<I", captured.data, at + 9)[0]
    (size,) = unpack_from("<I", captured.data, at + 9)
    return parse_table_map(captured.data[at + 25 : at + size - 4], mariadb=True)


def decoded(captured: Captured, table: Table) -> tuple[object, ...]:
    found = decode_range(
        captured.data,
        captured.start,
        captured.end,
        checksum=True,
        wanted=lambda table_map, offset: table,
        where=Where(file=captured.file),
    )
    ((_, batch),) = found
    (row,) = rows_of(batch, Op.INSERT)
    return row


def test_full_metadata_describes_the_table(source_server: MariadbServer, schema: str) -> None:
    captured = logged(source_server, schema, "FULL")
    found = describe_table(table_map(captured))
    (known,) = captured.tables.values()
    assert undescribed(table_map(captured)) == frozenset()
    assert [column.name for column in found.columns] == [column.name for column in known.columns]
    assert [column.nullable for column in found.columns] == [column.nullable for column in known.columns]
    charsets = [column.charset for column in found.columns if column.charset not in (None, "binary")]
    assert charsets == [column.charset for column in known.columns if column.charset]
    assert found.indexes == (Index("PRIMARY", ("n", "name", "id"), (0, 5, 0), unique=True),)
    assert decoded(captured, found) == decoded(captured, known)


def test_without_metadata_nothing_is_made_up(source_server: MariadbServer, schema: str) -> None:
    captured = logged(source_server, schema, "NO_LOG")
    found = describe_table(table_map(captured))
    assert undescribed(table_map(captured)) == {"names", "signs", "charsets", "members"}
    assert [column.name for column in found.columns[:3]] == ["@1", "@2", "@3"]
    row = decoded(captured, found)
    assert row[:7] == (-1, -2, "3.500", "2020-01-02 03:04:05.678", b"\xe9", "字".encode("gbk"), b"\x01")
    assert row[11:13] == (2, 3)


def varchar_of(collations: tuple[int, ...]) -> TableMap:
    return TableMap(TableName("s", "t"), (15,), (b"\x09\0",), (), Optional(collations=collations))


def test_collations_of_no_known_charset_are_refused() -> None:
    assert describe_table(varchar_of((2304,))).columns[0].charset == "utf8mb4"
    with pytest.raises(BinlogError, match="BINLOG-043") as caught:
        describe_table(varchar_of((5000,)), Where(position="f:4"))
    assert caught.value.values == {"column": "@1", "collation": 5000}
    assert caught.value.where.position == "f:4"


@pytest.mark.parametrize(
    "collations",
    [bytes.fromhex("03 08 fcff00 3f 08 fcff00"), bytes.fromhex("02 07 fcff00 01 3f 02 08")],
    ids=["each", "default"],
)
def test_a_vector_counts_among_the_text_columns(collations: bytes) -> None:
    """`id INT, w VARCHAR, v VECTOR, j VARCHAR latin1, k VARCHAR` of MySQL 9.7; 63 is binary."""
    types = (3, 15, 242, 15, 15)
    assert read_optional(MetadataReader(collations), types, mariadb=False).collations == (None, 255, 63, 8, 255)
