"""Asks a server how it converts the bytes of each character set, to check `unshard.mysql.charsets`."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import pyarrow as pa

from unshard.kernels.transcode import UntranslatableText, transcode
from unshard.mysql.charsets import MULTI_BYTE, PLAIN, UNICODE, to_text
from unshard.mysql.connection import rows

NO_CHARACTER = {"", "?", "\ufffd"}
"""What servers return for bytes that are no character."""

_SETUP = (
    "CREATE DATABASE {schema}",
    "USE {schema}",
    "CREATE TABLE byte (n int PRIMARY KEY, b varbinary(4))",
    "CREATE TABLE pair (n int PRIMARY KEY, b varbinary(4))",
    "INSERT INTO byte VALUES {values}",
    "INSERT INTO pair SELECT x.n * 256 + y.n, CONCAT(x.b, y.b) FROM byte x, byte y",
)


class Conversions:
    """Asks one server over `connection`. Creates a schema of that name for it."""

    def __init__(self, connection: Any, schema: str) -> None:
        self._connection = connection
        values = ",".join(f"({byte},x'{byte:02x}')" for byte in range(256))
        for statement in _SETUP:
            rows(connection, statement.format(schema=schema, values=values))

    def charsets(self) -> set[str]:
        """Return every character set of the server, except `binary`."""
        found = rows(self._connection, "SELECT CHARACTER_SET_NAME FROM information_schema.CHARACTER_SETS")
        return {str(name) for (name,) in found} - {"binary"}

    def characters(self, charset: str) -> dict[bytes, str]:
        """Return every character of one to three bytes that the server converts."""
        found = dict(self._converted(charset, "SELECT b FROM byte"))
        if charset in MULTI_BYTE:
            found |= {raw: text for raw, text in self._converted(charset, "SELECT b FROM pair") if raw[:1] not in found}
        if charset in ("ujis", "eucjpms"):
            found |= {
                raw: text
                for raw, text in self._converted(charset, "SELECT CONCAT(x'8f', b) AS b FROM pair")
                if raw[:2] not in found and len(text) == 1
            }
        return found

    def text(self, charset: str, value: bytes) -> str:
        """Convert a whole text; `?` replaces characters that can't be converted."""
        statement = f"SELECT HEX(CONVERT(CONVERT(x'{value.hex()}' USING {charset}) USING utf8mb4))"
        return bytes.fromhex(rows(self._connection, statement)[0][0]).decode()

    def _converted(self, charset: str, source: str) -> Iterator[tuple[bytes, str]]:
        """Yield values that are valid text of the character set and that convert to one character."""
        read = f"CONVERT(b USING {charset})"
        statement = f"SELECT HEX(b), HEX({read}), HEX(CONVERT({read} USING utf8mb4)) FROM ({source}) AS v"
        for value, taken, converted in rows(self._connection, statement):
            if converted is None or taken != value:  # not even text: NULL, or cut where it is wrong
                continue
            raw, text = bytes.fromhex(value), bytes.fromhex(converted).decode()
            if len(text) == 1 and (raw == b"?" or text not in NO_CHARACTER):
                yield raw, text


def differences(server: Conversions, charset: str) -> list[tuple[str, str | None, str | None]]:
    """Return where the kernel or `to_text` differ from the server, for every character: (bytes, ours, the server's)."""
    if charset in UNICODE or charset in PLAIN:
        return list(_different_code_points(server, charset))
    expected = server.characters(charset)
    found = transcode(pa.array(expected), charset).to_pylist()
    wrong: list[tuple[str, str | None, str | None]] = [
        (raw.hex(), ours, text)
        for (raw, text), ours in zip(expected.items(), found, strict=True)
        if ours != text or to_text(raw, charset) != text
    ]
    for raw in candidates(charset):
        # bytes that begin with a known character are several characters
        if not any(raw[:size] in expected for size in (1, 2, 3)) and (ours := decoded(raw, charset)) is not None:
            wrong.append((raw.hex(), ours, None))
    return wrong + (list(_different_quads(server)) if charset == "gb18030" else [])


def decoded(value: bytes, charset: str) -> str | None:
    """Return our text of the value, None if the kernel and `to_text` refuse it.

    Raises AssertionError if the two differ.
    """
    try:
        ours: str | None = transcode(pa.array([value]), charset)[0].as_py()
    except UntranslatableText:
        ours = None
    try:
        slow: str | None = to_text(value, charset)
    except UnicodeDecodeError:
        slow = None
    assert ours == slow, (value, charset)
    return ours


def candidates(charset: str) -> Iterator[bytes]:
    """Yield all byte sequences that could be one character of up to three bytes."""
    yield from (bytes([byte]) for byte in range(256))
    if charset in MULTI_BYTE:
        yield from (bytes([first, second]) for first in range(128, 256) for second in range(256))
    if charset in ("ujis", "eucjpms"):
        yield from (bytes([0x8F, second, third]) for second in range(128, 256) for third in range(256))


def _different_code_points(server: Conversions, charset: str) -> Iterator[tuple[str, str | None, str | None]]:
    """Compare every Unicode character of the character set, 65,536 code points at a time, without surrogates."""
    last = {"ascii": 0x7F, "ucs2": 0xFFFF, "utf8mb3": 0xFFFF}.get(charset, 0x10FFFF)
    for start in range(0, last + 1, 0x10000):
        codes = range(start, min(start + 0xFFFF, last) + 1)
        text = "".join(chr(code) for code in codes if not 0xD800 <= code <= 0xDFFF)
        value = text.encode(UNICODE.get(charset, "utf-8"))
        ours, theirs = decoded(value, charset), server.text(charset, value)
        if not ours == theirs == text:
            yield f"U+{start:X}", ours, theirs


def _different_quads(server: Conversions) -> Iterator[tuple[str, str | None, str | None]]:
    """Compare gb18030's characters of four bytes, by their first byte.

    The kernel is checked for each; `to_text`, and what must be refused, for every 61st.
    """
    digits, letters = range(0x30, 0x3A), range(0x81, 0xFF)
    for first in letters:
        values = [bytes([first, *rest]) for rest in product(digits, letters, digits)]
        pairs = list(zip(values, server.text("gb18030", b"".join(values)), strict=True))
        known = {raw: text for raw, text in pairs if text != "?"}
        found = transcode(pa.array(known, pa.binary()), "gb18030").to_pylist()
        yield from ((raw.hex(), ours, known[raw]) for raw, ours in zip(known, found, strict=True) if ours != known[raw])
        for raw, _ in pairs[::61]:
            if (ours := decoded(raw, "gb18030")) != known.get(raw):
                yield raw.hex(), ours, known.get(raw)
