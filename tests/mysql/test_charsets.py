"""Charset tables against the server's own conversions: every character, in both directions."""

from __future__ import annotations

from collections.abc import Iterator

import pyarrow as pa
import pytest

from support.conversions import Conversions, decoded, differences
from unshard.kernels.transcode import UntranslatableText, transcode
from unshard.mysql import charsets
from unshard.testing.mariadb_server import MariadbServer

KNOWN = charsets.PLAIN | charsets.SINGLE_BYTE.keys() | charsets.MULTI_BYTE.keys() | charsets.UNICODE.keys()


@pytest.fixture(scope="module")
def conversions(source_server: MariadbServer) -> Iterator[Conversions]:
    connection = source_server.connection()
    yield Conversions(connection, "charset_conversions")
    connection.close()


@pytest.mark.server
def test_every_charset_of_the_server_is_known(conversions: Conversions) -> None:
    shipped = conversions.charsets()
    assert len(shipped) > 38
    assert {charset for charset in shipped if not charsets.known(charset)} == set()


@pytest.mark.server
@pytest.mark.parametrize("charset", sorted(KNOWN - {"gb18030", "utf8"}))
def test_characters_are_those_of_the_server(conversions: Conversions, charset: str) -> None:
    assert differences(conversions, charset) == []


@pytest.mark.parametrize("charset", charsets.SINGLE_BYTE)
def test_tables_are_whole(charset: str) -> None:
    found = [decoded(bytes([byte]), charset) for byte in range(256)]
    if charset != "swe7":
        assert found[:128] == [chr(byte) for byte in range(128)]
    known = [text for text in found if text is not None]
    assert len(known) >= 127
    assert len(known) - len(set(known)) == (6 if charset == "armscii8" else 0)  # it has some signs of ASCII twice


def test_latin1_knows_every_byte() -> None:
    found = [decoded(bytes([byte]), "latin1") for byte in range(256)]
    assert None not in found
    assert found[0x80] == "€"
    assert [found[byte] for byte in (0x81, 0x8D, 0x8F, 0x90, 0x9D)] == ["\x81", "\x8d", "\x8f", "\x90", "\x9d"]


@pytest.mark.parametrize(
    ("charset", "value", "expected"),
    [
        ("ucs2", b"\0a\x4e\x2d", "a中"),
        ("utf16", b"\xd8\x3d\xde\x00\0a", "😀a"),
        ("utf16le", b"\x3d\xd8\x00\xdea\0", "😀a"),
        ("utf32", b"\0\1\xf6\0\0\0\0a", "😀a"),
        ("gbk", b"a\xd6\xd0\x81\x5c", "a中乗"),
        ("gb18030", b"\x81\x30\x81\x30", "\x80"),
        ("gb18030", b"\x94\x39\xfc\x36a\xa8\xbc\x84\x31\xa4\x37", "😀aḿ\ufffd"),
        ("sjis", b"\x81\x5f\xb1", "\\ｱ"),
        ("eucjpms", b"\xad\xa1\x8f\xf4\xfe\x8e\xb1z", "①黑ｱz"),
        ("swe7", b"\x5b\x5c\x5d", "ÄÖÅ"),
        ("ascii", b"abc", "abc"),
        ("utf8mb3", "中a".encode(), "中a"),
    ],
)
def test_texts(charset: str, value: bytes, expected: str) -> None:
    assert decoded(value, charset) == expected


@pytest.mark.parametrize(
    ("charset", "value"),
    [
        ("gbk", b"a\x81"),
        ("gbk", b"\x81\x20"),
        ("gb18030", b"\x81\x30\x81"),
        ("gb18030", b"\x84\x31\xa5\x30"),  # behind the basic plane
        ("gb18030", b"\xfe\x39\xfe\x39"),  # behind U+10FFFF
        ("gb18030", b"\x81\x30\x20\x30"),
        ("ujis", b"\x8f\xa2"),
        ("ujis", b"\x8f\xa1\xa1"),
        ("big5", b"\xa1\xc3"),  # the server's own replacement character
        ("utf16", b"\xd8\x3d"),
        ("utf16", b"\xd8\x3d\0a"),
        ("utf16", b"\xde\x00\0a"),
        ("utf16le", b"\x00\xde"),
        ("utf16", b"a"),
        ("ucs2", b"\xd8\x3d\xde\x00"),
        ("utf32", b"\0\0\xd8\0"),
        ("utf32", b"\0\x11\0\0"),
        ("utf32", b"\0\0\0"),
        ("hebrew", b"a\xa1"),
        ("ascii", b"a\x80"),
        ("utf8mb4", b"\xed\xa0\x80"),
        ("utf8mb3", b"\xc3"),
    ],
)
def test_no_text(charset: str, value: bytes) -> None:
    assert decoded(value, charset) is None


def test_columns() -> None:
    """NULLs stay, slices are right, the first wrong row is told."""
    values = pa.array([b"x", b"\xd6\xd0", None, b"", b"ab"])
    assert transcode(values, "gbk").to_pylist() == ["x", "中", None, "", "ab"]
    assert transcode(values.slice(1, 3), "gbk").to_pylist() == ["中", None, ""]
    assert transcode(values.slice(2), "utf8mb4").to_pylist() == [None, "", "ab"]
    assert transcode(values.slice(0, 0), "gbk").to_pylist() == []
    assert transcode(pa.nulls(3, pa.binary()), "gbk").to_pylist() == [None] * 3
    for charset in ("gbk", "ascii", "utf8mb4"):
        with pytest.raises(UntranslatableText) as caught:
            transcode(pa.array([b"a", None, b"\x80"]), charset)
        assert caught.value.row == 2
        assert str(caught.value) == f"the value is no {charset} text"
    with pytest.raises(KeyError):
        transcode(values, "utf9")


@pytest.mark.parametrize("charset", ["gbk", "sjis", "big5", "koi8r", "latin1", "euckr"])
def test_statements(charset: str) -> None:
    sql = {"sjis": "ALTER TABLE t COMMENT '表示'", "big5": "CREATE TABLE `功能` (a int)", "latin1": "CREATE TABLE é"}
    text = sql.get(charset, "CREATE TABLE t (a int)")
    raw = b"".join(character.encode(charsets.MULTI_BYTE.get(charset) or "cp1252") for character in text)
    assert charsets.statement_text(raw, charset) == text


@pytest.mark.parametrize(
    ("charset", "value"), [("sjis", b"'\x81\x5f'"), ("swe7", b"'a\\b'"), ("swe7", b"a[b"), ("armscii8", b"'a\xff'")]
)
def test_statements_that_would_read_otherwise(charset: str, value: bytes) -> None:
    with pytest.raises(UnicodeDecodeError, match="another sign"):
        charsets.statement_text(value, charset)


@pytest.mark.parametrize(
    ("raw", "text"),
    [
        (
            b"DROP TABLE IF EXISTS `t1`,`a[]` /* generated by server */",
            "DROP TABLE IF EXISTS `t1`,`aÄÅ` /* generated by server */",
        ),
        (b"SET @a = 'x@y' || \"`\"", "SET @a = 'xÉy' || \"é\""),
        (b"SELECT 'it''s {', `\\`", "SELECT 'it''s ä', `Ö`"),
    ],
)
def test_statements_of_swe7(raw: bytes, text: str) -> None:
    assert charsets.statement_text(raw, "swe7") == text


def test_what_is_known() -> None:
    assert all(map(charsets.known, ("utf8mb3", "latin1", "gbk", "swe7", "eucjpms", "utf32")))
    assert not charsets.known("utf9")
    assert not charsets.known("binary")
