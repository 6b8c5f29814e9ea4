"""Text of every charset: the dump and the binlog give the same values, or both stop."""

from __future__ import annotations

import pytest
from captured import Captured, capture

from support.conversions import candidates, decoded
from unshard.dump.read import read_rows
from unshard.errors import BinlogError, DumpError
from unshard.mysql import charsets
from unshard.testing.mariadb_server import MariadbServer

pytestmark = pytest.mark.server

BY_TABLE = sorted({*charsets.SINGLE_BYTE, *charsets.MULTI_BYTE} - {"gb18030"})
UNICODE = {"ascii": "ascii", "utf8mb3": "utf-8", "utf8mb4": "utf-8", **charsets.UNICODE}
UNCONVERTIBLE = {
    "hebrew": "61a1",
    "greek": "ff",
    "cp1250": "6181",
    "tis620": "61db",
    "swe7": "7f",
    "geostd8": "81",
    "big5": "a1c3",
    "euckr": "41a2e8",
    "ascii": "6180",
    "ucs2": "d800",
}


def letters(charset: str) -> list[tuple[bytes, str]]:
    """Characters of a charset (a seventh of them, where it has a table), with their bytes."""
    if charset in UNICODE:
        text = "".join(map(chr, range(0x20, 0x7F))) + ("" if charset == "ascii" else "é中\uffee")
        text += "😀" if charset in ("utf8mb4", "utf16", "utf16le", "utf32") else ""
        return [(character.encode(UNICODE[charset]), character) for character in text]
    return [(raw, found) for raw in list(candidates(charset))[::7] if (found := decoded(raw, charset))]


def in_charset(value: bytes, charset: str) -> str:
    return f"_{charset} x'{value.hex()}'"


def dumped(server: MariadbServer, captured: Captured) -> list[object]:
    (table,) = captured.tables.values()
    connection = server.connection()
    try:
        return [column.to_pylist() for (batch,) in [read_rows(connection, table)] for column in batch.columns]
    finally:
        connection.close()


@pytest.mark.parametrize("charset", [*BY_TABLE, *UNICODE])
def test_dump_and_binlog_give_the_same_text(source_server: MariadbServer, schema: str, charset: str) -> None:
    known = letters(charset)
    value, text = b"".join(raw for raw, _ in known), "".join(text for _, text in known)
    few = [pair for pair in known if pair[1] < "\U00010000"][-4:]  # a server tells no others of its members
    part, short = b"".join(raw for raw, _ in few), "".join(text for _, text in few)
    options = f"CHARACTER SET {charset}"
    columns = f"a CHAR(20) {options}, b VARCHAR(99) {options}, c MEDIUMTEXT {options}, d ENUM('{short}', 'z') {options}"
    member = in_charset(part, charset)
    captured = capture(
        source_server,
        schema,
        ["SET sql_mode = ''", f"CREATE TABLE t ({columns})"],
        [f"INSERT INTO t VALUES ({member}, {member}, {in_charset(value, charset)}, 1), (NULL, '', NULL, 'z')"],
    )
    expected = [[short, None], [short, ""], [text, None], [short, "z"]]
    assert [column.to_pylist() for column in captured.batch().columns[2:]] == expected
    assert dumped(source_server, captured) == expected


@pytest.mark.parametrize("charset", UNCONVERTIBLE)
def test_what_the_server_cannot_convert_stops_both(source_server: MariadbServer, schema: str, charset: str) -> None:
    captured = capture(
        source_server,
        schema,
        ["SET sql_mode = ''", f"CREATE TABLE t (v VARCHAR(20) CHARACTER SET {charset})"],
        [f"INSERT INTO t VALUES (_{charset} x'{UNCONVERTIBLE[charset]}')"],
    )
    ((stored,),) = source_server.query(f"SELECT HEX(v) FROM {schema}.t")
    assert stored.lower() == UNCONVERTIBLE[charset]
    with pytest.raises(BinlogError, match="BINLOG-021"):
        captured.decode()
    with pytest.raises(DumpError, match="DUMP-005") as caught:
        dumped(source_server, captured)
    assert f"the value is no {charset} text: x'{stored.lower()}'" in str(caught.value)
