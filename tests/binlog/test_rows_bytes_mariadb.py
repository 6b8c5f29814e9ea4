"""MariaDB's own encodings as literal bytes; the comments take the bytes apart."""

from __future__ import annotations

import zlib

import pytest
from row_images import value

from unshard.binlog.columns import UnpackError, unpack
from unshard.errors import BinlogError
from unshard.model.table import Column


def temporal(kind: str, fsp: int) -> Column:
    return Column("v", kind, f"{kind}({fsp}) /* mariadb-5.3 */", fsp=fsp)


@pytest.mark.parametrize(
    ("kind", "size", "image", "expected"),
    [
        # A length, then the bytes as the text has them; the zeros at the end are left out.
        ("uuid", 16, "0f 123e4567e89b42d3a456426614174000"[:-2], "123e4567-e89b-42d3-a456-426614174000"),
        ("uuid", 16, "00", "00000000-0000-0000-0000-000000000000"),
        ("inet4", 4, "04 0a 00 01 ff", "10.0.1.255"),
        ("inet4", 4, "01 0a", "10.0.0.0"),
        ("inet6", 16, "00", "::"),
        ("inet6", 16, "02 fe 80", "fe80::"),
        ("inet6", 16, "10 00000000000000000000ffff01020304", "::ffff:1.2.3.4"),
        ("inet6", 16, "10 20010db8000000000000000000000001", "2001:db8::1"),
    ],
)
def test_addresses(kind: str, size: int, image: str, expected: str) -> None:
    assert value(Column("v", kind, kind), 254, bytes([254, size]), bytes.fromhex(image)) == expected


@pytest.mark.parametrize(
    ("kind", "fsp", "code", "image", "expected"),
    [
        # Units of the fraction plus those of 3020400 seconds: 30204000 tenths are 0x1cce060.
        ("time", 1, 11, "01 cc e0 60", "00:00:00.0"),
        ("time", 1, 11, "01 cc e0 5f", "-00:00:00.1"),
        ("time", 2, 11, "00 00 00 01", "-838:59:59.99"),
        ("time", 6, 11, "05 7e 7b bc f7 ff", "838:59:59.999999"),
        # year, month of 13, day of 32, hour of 24, minute, second, then ten tenths
        ("datetime", 1, 12, "00 a9 60 d7 00 01", "2024-00-00 00:00:00.1"),
        ("datetime", 6, 12, "04 fc ee 39 43 bf ff ff", "9999-12-31 23:59:59.999999"),
        ("datetime", 3, 12, "00 00 00 00 00 00 00", "0000-00-00 00:00:00.000"),
        # seconds, then the fraction as it is: 9 tenths, 999 thousandths
        ("timestamp", 1, 7, "7f ff ff ff 09", "2038-01-19 03:14:07.9"),
        ("timestamp", 3, 7, "ff ff ff ff 03 e7", "2106-02-07 06:28:15.999"),
        ("timestamp", 6, 7, "00 00 00 00 00 00 00", "0000-00-00 00:00:00.000000"),
    ],
)
def test_old_fractions(kind: str, fsp: int, code: int, image: str, expected: str) -> None:
    assert value(temporal(kind, fsp), code, b"", bytes.fromhex(image)) == expected


@pytest.mark.parametrize(
    ("column", "code", "metadata", "image"),
    [
        (Column("v", "uuid", "uuid"), 254, b"\xfe\x10", "11" + "01" * 17),
        (Column("v", "inet4", "inet4"), 254, b"\xfe\x04", "04 01"),
        (temporal("time", 1), 11, b"", "03 99 c0 c0"),  # 839:00:00.0
        (temporal("datetime", 6), 12, b"", "80 00 00 00 00 00 00 00"),
        (temporal("datetime", 1), 12, b"", "ff ff ff ff ff ff"),
        (temporal("timestamp", 1), 7, b"", "7f ff ff ff 0a"),
    ],
)
def test_bytes_that_are_no_value(column: Column, code: int, metadata: bytes, image: str) -> None:
    with pytest.raises(BinlogError, match="BINLOG-021"):
        value(column, code, metadata, bytes.fromhex(image))


def test_compressed_text() -> None:
    text = Column("v", "varchar", "varchar(300) /*M!100301 COMPRESSED*/", charset="latin1", length=300)
    # two bytes of length, then 0x8a: raw DEFLATE, two bytes of length; 0x012c is 300
    image = bytes.fromhex("0a 00 8a 01 2c 4b 4c 1c 05 c4 02 00")
    assert value(text, 141, b"\x2d\x01", image) == "a" * 300
    assert value(text, 141, b"\x2d\x01", bytes.fromhex("03 00 00 80 e9")) == "€é"
    assert value(text, 141, b"\x2d\x01", bytes.fromhex("00 00")) == ""


def test_a_compressed_column_is_not_taken_for_a_plain_one() -> None:
    with pytest.raises(BinlogError, match="BINLOG-022"):
        value(Column("v", "blob", "blob"), 140, b"\x02", bytes(9))
    with pytest.raises(BinlogError, match="BINLOG-022"):
        value(Column("v", "blob", "blob /*M!100301 COMPRESSED*/"), 252, b"\x02", bytes(9))


def test_unpack() -> None:
    packed = zlib.compress(b"x" * 70000)
    values = [None, b"", b"\0", b"\0ab", b"\x83\x01\x11\x70" + packed, b"\x8b\x01\x11\x70" + packed[2:-4]]
    assert unpack(values) == [None, b"", b"", b"ab", b"x" * 70000, b"x" * 70000]


@pytest.mark.parametrize(
    "value",
    [
        b"\x81",
        b"\x01ab",
        b"\x80ab",
        b"\x85" + bytes(20),
        b"\x91\x02ab",
        b"\x81\x05not zlib",
        b"\x81\x04" + zlib.compress(b"abcde"),  # longer than it says
        b"\x81\x06" + zlib.compress(b"abcde"),  # shorter
        b"\x81\x05" + zlib.compress(b"abcde")[:-1],  # without its last byte
        b"\x81\x05" + zlib.compress(b"abcde") + b"\0",
        b"\x84\xff\xff\xff\xff" + zlib.compress(b"a" * 9000),  # 4 GiB out of a few bytes
    ],
)
def test_damage_is_told(value: bytes) -> None:
    with pytest.raises(UnpackError):
        unpack([b"\0fine", value])


def test_members_that_the_server_cannot_show() -> None:
    """`?` stands for itself, or for a letter beyond three bytes."""
    column = Column("v", "enum", "enum('?','a')", members=("?", "a"), charset="utf8mb4")
    with pytest.raises(BinlogError, match="BINLOG-045"):
        value(column, 254, b"\xf7\x01", b"\x02")
    assert value(Column("v", "enum", "enum('?')", members=("?",), charset="latin1"), 254, b"\xf7\x01", b"\x01") == "?"
