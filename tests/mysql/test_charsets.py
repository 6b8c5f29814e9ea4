"""Charset tables against the server's own conversions, byte by byte and pair by pair."""

from __future__ import annotations

import pytest

from unshard.mysql import charsets
from unshard.testing.servers import MariadbServer

NO_CHARACTER = {"?", "\ufffd"}


def converted(server: MariadbServer, charset: str, values: list[bytes]) -> list[str | None]:
    """Each value read in that charset, as the server turns it into Unicode; None where it can't."""
    found: list[str | None] = []
    for start in range(0, len(values), 2000):
        part = values[start : start + 2000]
        texts = ",".join(f"hex(convert(convert(x'{value.hex()}' using {charset}) using utf8mb4))" for value in part)
        (row,) = server.query(f"SELECT {texts}")
        found += [None if text is None else bytes.fromhex(text).decode() for text in row]
    return [None if text is None or NO_CHARACTER.intersection(text) else text for text in found]


def single(charset: str) -> list[str | None]:
    table = charsets.single_byte_table(charset)
    entries = [table[at : at + 4] for at in range(0, 1024, 4)]
    return [entry[1 : 1 + entry[0]].decode() if entry[0] else None for entry in entries]


def decoded(charset: str, value: bytes) -> str | None:
    try:
        return charsets.decode(value, charset)
    except UnicodeDecodeError:
        return None


@pytest.mark.parametrize("charset", charsets.SINGLE_BYTE)
def test_tables_are_whole(charset: str) -> None:
    found = single(charset)
    assert len(found) == 256
    assert found[:128] == [chr(byte) for byte in range(128)]
    known = [text for text in found if text is not None]
    assert len(set(known)) == len(known)


def test_latin1_knows_every_byte() -> None:
    found = single("latin1")
    assert None not in found
    assert found[0x80] == "€"
    assert [found[byte] for byte in (0x81, 0x8D, 0x8F, 0x90, 0x9D)] == ["\x81", "\x8d", "\x8f", "\x90", "\x9d"]


@pytest.mark.server
@pytest.mark.parametrize("charset", charsets.SINGLE_BYTE)
def test_single_bytes_are_those_of_the_server(source_server: MariadbServer, charset: str) -> None:
    expected = converted(source_server, charset, [bytes([byte]) for byte in range(256)])
    expected[0x3F] = "?"
    assert single(charset) == expected


@pytest.mark.server
@pytest.mark.parametrize("charset", ["gbk", "gb2312", "big5", "sjis", "cp932", "ujis", "euckr"])
def test_pairs_are_those_of_the_server(source_server: MariadbServer, charset: str) -> None:
    """Where the server has a character, ours is the same one; that we know others besides does no harm."""
    pairs = [bytes([first, second]) for first in range(0x81, 0xFF) for second in range(0x40, 0xFF)]
    pairs += [bytes([byte]) for byte in range(128) if byte != 0x3F]
    if charset == "ujis":
        pairs += [bytes([0x8F, first, second]) for first in range(0xA1, 0xFF) for second in range(0xA1, 0xFF)]
    wrong = []
    same = 0
    for value, expected in zip(pairs, converted(source_server, charset, pairs), strict=True):
        ours = decoded(charset, value)
        same += ours is not None and ours == expected
        if expected is not None and ours not in (None, expected):
            wrong.append((value.hex(), ours, expected))
    assert wrong == []
    assert same > 6000


@pytest.mark.parametrize(
    ("charset", "value", "expected"),
    [
        ("ucs2", b"\0a\x4e\x2d", "a中"),
        ("utf16", b"\xd8\x3d\xde\x00", "😀"),
        ("utf16le", b"\x3d\xd8\x00\xde", "😀"),
        ("utf32", b"\0\1\xf6\0", "😀"),
        ("gb18030", b"\x81\x30\x81\x30", "\x80"),
        ("sjis", b"\x81\x5f", "\\"),
    ],
)
def test_multi_byte(charset: str, value: bytes, expected: str) -> None:
    assert charsets.decode(value, charset) == expected


def test_what_is_known() -> None:
    assert charsets.known("utf8mb3")
    assert charsets.known("latin1")
    assert charsets.known("gbk")
    assert not charsets.known("swe7")
    assert not charsets.known("eucjpms")
