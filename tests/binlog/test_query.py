from __future__ import annotations

from struct import pack

import pytest

from unshard.binlog.query import Damaged, read_query
from unshard.binlog.query_kind import QueryKind, classify, first_words


def body(sql: bytes, *status: bytes, schema: bytes = b"shop", error: int = 0) -> bytes:
    block = b"".join(status)
    return pack("<IIBHH", 1, 2, len(schema), error, len(block)) + block + schema + b"\0" + sql


def test_a_query_of_mariadb() -> None:
    query = read_query(
        body(
            b"create table t (a int)",
            b"\x00" + pack("<I", 1 << 26 | 1 << 27 | 1 << 19),  # flags2: both checks off, autocommit off
            b"\x01" + pack("<Q", 1411383296),  # sql_mode
            b"\x06\x03std",  # catalog
            b"\x03\x02\0\x01\0",  # auto_increment increment, offset
            b"\x04\x21\0\x2d\0\x08\0",  # charset: client 33, connection 45, server 8
            b"\x05\x06+03:00",  # time zone
            b"\x07\x01\0",  # lc_time_names
            b"\x08\x1c\0",  # collation of the database
            b"\x0b\x04root\x01%",  # invoker
            b"\x0c\x02a\0bc\0",  # schemas
            b"\x80\x01\x02\x03",  # microseconds
            b"\x81" + bytes(8),  # xid
            b"\x82\x04" + bytes(8),  # GTID flags with the number of an ALTER
            b"\x83\x01" + bytes(4),  # collations by charset
            b"\xff\xff\xff",  # padding
            error=1051,
        )
    )
    assert (query.schema, query.sql, query.error_code) == ("shop", "create table t (a int)", 1051)
    assert (query.foreign_key_checks, query.unique_checks, query.autocommit) == (False, False, False)
    assert query.sql_mode == 1411383296
    assert (query.client_charset, query.connection_collation, query.server_collation) == (33, 45, 8)
    assert (query.time_zone, query.database_collation, query.microseconds) == ("+03:00", 28, 0x030201)
    assert query.auto_increment == (2, 1)


def test_a_query_of_mysql_8() -> None:
    query = read_query(
        body(
            b"drop table t",
            b"\x00" + bytes(4),
            b"\x02\x03std\0",  # catalog with its NUL
            b"\x09" + bytes(8),
            b"\x0c\xfe",  # more schemas than are listed
            b"\x0d\x01\0\0",
            b"\x10\x01",
            b"\x11" + bytes(8),
            b"\x12\xff\0",  # default collation of utf8mb4
            b"\x13\0\x14\0",
        )
    )
    assert (query.utf8mb4_collation, query.microseconds, query.time_zone) == (255, 1, None)
    assert (query.foreign_key_checks, query.autocommit) == (True, True)


def test_text_is_decoded_with_the_client_charset() -> None:
    def charset(collation: int) -> bytes:
        return b"\x04" + pack("<HHH", collation, collation, collation)

    assert read_query(body("ä".encode("latin-1"), charset(8))).sql == "ä"
    assert read_query(body("表".encode("gbk"), charset(28))).sql == "表"
    assert read_query(body("表".encode(), charset(2304))).sql == "表"
    assert read_query(body("表".encode(), charset(63))).sql == "表"
    assert read_query(body(b"\x81\x80", charset(8))).sql == "\x81€"
    assert read_query(body("'表示'".encode("shift_jis"), charset(13))).sql == "'表示'"
    assert read_query(body(b"a _utf8'b', 'c\xe4'", charset(8))).sql == "a _utf8'b', 'cä'"
    assert read_query(body("a _latin1'ä'".encode(), charset(45))).sql == "a _latin1'ä'"
    refused = {
        45: b"\xff",
        63: b"\xff",
        16: b"\xa1",
        10: b"`a`, [",
        9999: b"a",
        8: b"a _gbk 'x\xe4'",
        28: b'_gbk"\xd6\xd0"',
    }
    for collation, sql in refused.items():
        with pytest.raises(Damaged):
            read_query(body(sql, charset(collation)))


def test_the_ends_of_the_body_hold() -> None:
    whole = body(b"", b"\x05\x03UTC", b"\x0c\x01abc\0", b"\x0b\x01a\x01b")
    assert read_query(whole).time_zone == "UTC"
    for size in range(len(whole)):
        with pytest.raises(Damaged):
            read_query(whole[:size])


@pytest.mark.parametrize(
    "status",
    [b"\x00\x01", b"\x05", b"\x05\x09UTC", b"\x0b\x05root", b"\x0b\x04root", b"\x0c\x02a\0b", b"\x63", b"\x82\x04\0"],
)
def test_status_variables_that_can_not_be_read(status: bytes) -> None:
    with pytest.raises(Damaged):
        read_query(body(b"x", status))


@pytest.mark.parametrize(
    ("sql", "kind"),
    [
        ("BEGIN", QueryKind.BEGIN),
        ("start transaction", QueryKind.BEGIN),
        ("COMMIT", QueryKind.COMMIT),
        ("rollback", QueryKind.ROLLBACK),
        ("ROLLBACK TO `a`", QueryKind.ROLLBACK_TO),
        ("ROLLBACK TO SAVEPOINT a", QueryKind.ROLLBACK_TO),
        ("ROLLBACK WORK TO a", QueryKind.ROLLBACK_TO),
        ("SAVEPOINT `a`", QueryKind.SAVEPOINT),
        ("RELEASE SAVEPOINT a", QueryKind.SAVEPOINT),
        ("XA PREPARE X'71',X'',1", QueryKind.XA),
        ("  insert into t values (1)", QueryKind.CHANGE),
        ("/* a */-- b\n# c\n(SELECT f())", QueryKind.CHANGE),
        ("/*Mine*/ DELETE FROM t", QueryKind.CHANGE),
        ("/*!40000 REPLACE */ into t values (1)", QueryKind.CHANGE),
        ("/*M!100100 LOAD DATA */", QueryKind.CHANGE),
        ("WITH c AS (SELECT 1) UPDATE t SET a = 1", QueryKind.CHANGE),
        ("--\nDROP TABLE t", QueryKind.STATEMENT),
        ("CREATE TABLE temporary_names (a int)", QueryKind.STATEMENT),
        ("CREATE OR REPLACE TABLE t (a int)", QueryKind.STATEMENT),
        ("DROP TABLE `t` /* generated by server */", QueryKind.STATEMENT),
        ("/*!50003 CREATE*/ /*!50017 DEFINER=`root`@`%`*/ TRIGGER x", QueryKind.STATEMENT),
        ("TRUNCATE t", QueryKind.STATEMENT),
        ("{what is this}", QueryKind.STATEMENT),
        ("CREATE TEMPORARY TABLE t (a int)", QueryKind.STATEMENT),
        ("CREATE OR REPLACE TEMPORARY TABLE t (a int)", QueryKind.STATEMENT),
        ("CREATE TABLE temporary (a int)", QueryKind.STATEMENT),
        ("CREATE TEMPORARY SEQUENCE s", QueryKind.NOISE),
        ("CREATE OR REPLACE TEMPORARY SEQUENCE s", QueryKind.NOISE),
        ("DROP TEMPORARY TABLE IF EXISTS t", QueryKind.NOISE),
        ("DROP /*!40005 TEMPORARY */ TABLE IF EXISTS `t`", QueryKind.NOISE),
        ("# Dummy event replacing event type 160 that slave cannot handle.", QueryKind.NOISE),
        ("# Dum", QueryKind.NOISE),
        ("", QueryKind.NOISE),
    ],
)
def test_kinds(sql: str, kind: QueryKind) -> None:
    assert classify(sql) is kind


def test_first_words() -> None:
    assert first_words("alter /* x */ table `t`", 3) == ["ALTER", "TABLE"]
