"""Each odd encoding as literal bytes; the comments take the bytes apart."""

from __future__ import annotations

import pytest
from row_images import value

from unshard.errors import BinlogError
from unshard.model.table import Column


def decimal(precision: int, scale: int) -> Column:
    return Column("v", "decimal", f"decimal({precision},{scale})", precision=precision, scale=scale)


def temporal(kind: str, fsp: int = 0) -> Column:
    return Column("v", kind, kind, fsp=fsp)


@pytest.mark.parametrize(
    ("column", "image", "expected"),
    [
        # 14 digits before the point: 5 in three bytes, 9 in four; 4 after it in two. First bit: positive.
        (decimal(18, 4), "80 00 01 0d fb 38 d2 04 d2", "1234567890.1234"),
        # The same, negative: every bit turned over.
        (decimal(18, 4), "7f ff fe f2 04 c7 2d fb 2d", "-1234567890.1234"),
        (decimal(9, 0), "bb 9a c9 ff", "999999999"),
        (decimal(2, 2), "81", "0.01"),  # nothing before the point: the sign sits on the fraction
        (decimal(2, 2), "7e", "-0.01"),
        (decimal(3, 0), "80 00", "0"),
        (decimal(3, 0), "7f ff", "0"),  # a zero with a sign, which an UNSIGNED column does not take
        (decimal(4, 2), "7f ff", "0.00"),
        (decimal(20, 9), "7f ff ff ff ff ff ff ff ff ff", "0.000000000"),
        (decimal(10, 9), "80 00 00 00 05", "0.000000005"),
    ],
)
def test_decimal(column: Column, image: str, expected: str) -> None:
    assert value(column, 246, bytes([column.precision, column.scale]), bytes.fromhex(image)) == expected


@pytest.mark.parametrize("image", ["bb 9a ca 00", "ff ff ff ff"])
def test_decimal_digits_beyond_nine_nines_are_damage(image: str) -> None:
    with pytest.raises(BinlogError, match="BINLOG-021"):
        value(decimal(9, 0), 246, b"\x09\x00", bytes.fromhex(image))


@pytest.mark.parametrize(
    ("fsp", "image", "expected"),
    [
        (0, "80 10 83", "01:02:03"),  # sign 1, hour 1 (<< 12), minute 2 (<< 6), second 3
        (0, "7f ff ff", "-00:00:01"),  # 0x800000 - 1
        (0, "b4 6e fb", "838:59:59"),
        (1, "80 00 01 32", "00:00:01.5"),  # 0x32: 50 hundredths
        (2, "7f ff ff ff", "-00:00:00.01"),  # minus one hundredth: a borrow through all four bytes
        (2, "7f ff fe ce", "-00:00:01.50"),  # -(0x000001 32) over 32 bits
        (3, "7f ff ff ff f6", "-00:00:00.001"),  # ten ten-thousandths below
        (6, "7f ff ff ff ff ff", "-00:00:00.000001"),
        (6, "80 00 00 0f 42 3f", "00:00:00.999999"),
    ],
)
def test_time(fsp: int, image: str, expected: str) -> None:
    assert value(temporal("time", fsp), 19, bytes([fsp]), bytes.fromhex(image)) == expected


@pytest.mark.parametrize(
    ("fsp", "image", "expected"),
    [
        # 1 | 2024*13+2 in 17 bits | day 29 | 23:59:58
        (0, "99 b2 bb 7e fa", "2024-02-29 23:59:58"),
        (0, "80 00 00 00 00", "0000-00-00 00:00:00"),
        (0, "99 b2 80 00 00", "2024-02-00 00:00:00"),  # a partial date
        (3, "99 b2 bb 7e fa 27 06", "2024-02-29 23:59:58.999"),  # 0x2706: 9990 ten-thousandths
        (6, "99 b2 bb 7e fa 00 00 01", "2024-02-29 23:59:58.000001"),
    ],
)
def test_datetime(fsp: int, image: str, expected: str) -> None:
    assert value(temporal("datetime", fsp), 18, bytes([fsp]), bytes.fromhex(image)) == expected


@pytest.mark.parametrize(
    ("column", "code", "metadata", "image", "expected"),
    [
        (temporal("timestamp"), 17, b"\0", "7f ff ff ff", "2038-01-19 03:14:07"),
        (temporal("timestamp"), 17, b"\0", "00 00 00 00", "0000-00-00 00:00:00"),
        (temporal("timestamp", 6), 17, b"\6", "00 00 00 00 00 00 01", "1970-01-01 00:00:00.000001"),
        (temporal("timestamp"), 7, b"", "80 51 01 00", "1970-01-02 00:00:00"),  # old: little-endian, 86400
        (temporal("date"), 10, b"", "5d d0 0f", "2024-02-29"),  # 2024 << 9 | 2 << 5 | 29
        (temporal("time"), 11, b"", "83 27 00", "01:01:15"),  # old: the number 10115
        (temporal("time"), 11, b"", "7d d8 ff", "-01:01:15"),
        (temporal("datetime"), 12, b"", "ea 7c ac 8b 68 12 00 00", "2024-02-29 23:59:46"),  # 20240229235946
        (Column("v", "year", "year(4)"), 13, b"", "00", 0),
        (Column("v", "year", "year(4)"), 13, b"", "7c", 2024),
        (Column("v", "mediumint", "mediumint(9)"), 9, b"", "ff ff ff", -1),
        (Column("v", "mediumint", "mediumint(9) unsigned"), 9, b"", "ff ff ff", 16777215),
        # BIT(9): metadata one bit and one byte; big-endian
        (Column("v", "bit", "bit(9)", precision=9), 16, b"\x01\x01", "01 02", b"\x01\x02"),
        (Column("v", "bit", "bit(8)", precision=8), 16, b"\x00\x01", "80", b"\x80"),
        # CHAR(255) of utf8mb4: 1020 bytes; bits 4 and 5 of 0xfe hold the two high bits of 0x3fc, turned: 0xce 0xfc
        (
            Column("v", "char", "char(255)", charset="utf8mb4", length=255),
            254,
            b"\xce\xfc",
            "03 00 61 c3 a9",  # two bytes of length, as the column may pass 255
            "aé",
        ),
        (Column("v", "binary", "binary(4)", length=4), 254, b"\xfe\x04", "01 ff", b"\xff\0\0\0"),
        (Column("v", "varchar", "varchar(10)", charset="latin1", length=10), 15, b"\x0a\x00", "02 80 81", "€\x81"),
        (Column("v", "enum", "enum('a','b')", members=("a", "b")), 254, b"\xf7\x01", "02", "b"),
        (Column("v", "enum", "enum('a','b')", members=("a", "b")), 254, b"\xf7\x01", "00", ""),
        (Column("v", "set", "set('a','b','c')", members=("a", "b", "c")), 254, b"\xf8\x01", "05", "a,c"),
        (Column("v", "tinyblob", "tinyblob", length=255), 252, b"\x01", "02 00 ff", b"\0\xff"),
    ],
)
def test_value(column: Column, code: int, metadata: bytes, image: str, expected: object) -> None:
    assert value(column, code, metadata, bytes.fromhex(image)) == expected


@pytest.mark.parametrize(
    ("column", "code", "metadata", "image"),
    [
        (temporal("date"), 10, b"", "bd d1 0f"),  # month 13
        (temporal("datetime"), 18, b"\0", "19 b2 7b 7e fa"),  # the first bit is missing
        (temporal("datetime"), 18, b"\0", "99 b2 7b 7e ff"),  # second 63
        (temporal("time", 6), 19, b"\6", "80 00 00 0f 42 40"),  # a million millionths
        (temporal("time"), 19, b"\0", "ff ff ff"),
        (Column("v", "bit", "bit(9)", precision=9), 16, b"\x01\x01", "02 00"),  # a tenth bit
        (Column("v", "binary", "binary(2)", length=2), 254, b"\xfe\x02", "03 01 02 03"),
        (Column("v", "enum", "enum('a')", members=("a",)), 254, b"\xf7\x01", "02"),
        (Column("v", "set", "set('a')", members=("a",)), 254, b"\xf8\x01", "02"),
        (Column("v", "varchar", "varchar(9)", charset="utf8mb4", length=9), 15, b"\x24\x00", "02 c3 28"),
        (Column("v", "varchar", "varchar(9)", charset="utf8mb4", length=9), 15, b"\x24\x00", "03 ed a0 80"),
        (Column("v", "varchar", "varchar(9)", charset="ascii", length=9), 15, b"\x09\x00", "01 e9"),
        (Column("v", "varchar", "varchar(9)", charset="cp1257", length=9), 15, b"\x09\x00", "01 a1"),
        (Column("v", "varchar", "varchar(9)", charset="gbk", length=9), 15, b"\x12\x00", "01 81"),
        (Column("v", "json", "json"), 245, b"\x04", "02 00 00 00 04 03"),
        (Column("v", "json", "json"), 245, b"\x04", "03 00 00 00 0c 01 e9"),
        (Column("v", "json", "json"), 245, b"\x04", "03 00 00 00 04 00"),
    ],
)
def test_bytes_that_are_no_value(column: Column, code: int, metadata: bytes, image: str) -> None:
    with pytest.raises(BinlogError) as caught:
        value(column, code, metadata, bytes.fromhex(image))
    assert caught.value.code == "BINLOG-021"
    assert caught.value.values == {"column": "v"}
    assert caught.value.where.table == "s.t"
    assert caught.value.where.position is not None
    assert caught.value.where.position.startswith("mysql-bin.000001:")


@pytest.mark.parametrize(
    ("column", "code", "metadata", "expected"),
    [
        (Column("v", "varchar", "varchar(9)", charset="utf9", length=9), 15, b"\x09\0", "BINLOG-027"),
    ],
)
def test_types_not_handled_are_named(column: Column, code: int, metadata: bytes, expected: str) -> None:
    with pytest.raises(BinlogError) as caught:
        value(column, code, metadata, bytes(64))
    assert caught.value.code == expected
    assert caught.value.values["column"] == "v"
    assert caught.value.where.table == "s.t"
    assert str(caught.value)


@pytest.mark.parametrize(
    ("column", "code", "metadata"),
    [
        (Column("v", "int", "int(11)"), 8, b""),
        (decimal(10, 2), 246, b"\x0a\x03"),
        (temporal("datetime", 3), 18, b"\x06"),
        (Column("v", "bit", "bit(8)", precision=8), 16, b"\x01\x01"),
        (Column("v", "enum", "enum", members=tuple(map(str, range(300)))), 254, b"\xf7\x01"),
        (Column("v", "binary", "binary(4)", length=4), 254, b"\xfe\x08"),
        (Column("v", "varchar", "varchar(300)", charset="latin1", length=300), 15, b"\x0a\x00"),
        (Column("v", "text", "text", charset="latin1"), 252, b"\x01"),
        (Column("v", "char", "char(4)", charset="latin1", length=4), 254, b"\xf7\x01"),
    ],
)
def test_another_shape_than_known_is_refused(column: Column, code: int, metadata: bytes) -> None:
    with pytest.raises(BinlogError) as caught:
        value(column, code, metadata, bytes(64))
    assert caught.value.code == "BINLOG-022"
    assert column.definition in caught.value.values["known"]
    assert str(code) in caught.value.values["logged"]
