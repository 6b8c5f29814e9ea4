"""Character sets of text columns, and the conversion of their bytes to UTF-8, exactly as the server does it.

Python's codecs agree with the server's tables except for the differences in `charset_differences.py`. MariaDB and MySQL
have the same tables; tests compare every byte and every pair of bytes with both. Where the server returns U+FFFD (or
`?`) for bytes without meaning, this module has no character. A character that the server can't convert has no entry: it
is an error, never a question mark.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

PLAIN = frozenset({"utf8", "utf8mb3", "utf8mb4", "ascii"})
"""Character sets whose bytes are valid UTF-8 already."""

SINGLE_BYTE = {
    "latin1": "cp1252",
    "latin2": "iso8859_2",
    "latin5": "iso8859_9",
    "latin7": "iso8859_13",
    "cp1250": "cp1250",
    "cp1251": "cp1251",
    "cp1256": "cp1256",
    "cp1257": "cp1257",
    "cp850": "cp850",
    "cp852": "cp852",
    "cp866": "cp866",
    "koi8r": "koi8_r",
    "koi8u": "koi8_u",
    "greek": "iso8859_7",
    "hebrew": "iso8859_8",
    "macroman": "mac_roman",
    "macce": "mac_latin2",
    "hp8": "hp_roman8",
    "tis620": "tis_620",
    **dict.fromkeys(("swe7", "dec8", "armscii8", "geostd8", "keybcs2"), "ascii"),
}
MULTI_BYTE = {
    "gbk": "gbk",
    "gb2312": "gb2312",
    "gb18030": "gb18030",
    "big5": "big5",
    "sjis": "shift_jis",
    "cp932": "cp932",
    "ujis": "euc_jp",
    "eucjpms": "euc_jp",
    "euckr": "cp949",
}
UNICODE = {"ucs2": "utf_16_be", "utf16": "utf_16_be", "utf16le": "utf_16_le", "utf32": "utf_32_be"}

BEYOND_THREE_BYTES = frozenset({"utf8mb4", "utf16", "utf16le", "utf32", "gb18030"})
"""Character sets with letters that take four bytes in UTF-8. information_schema and SHOW CREATE TABLE can't show those
letters.
"""

TWO_CODES = frozenset({"cp932", "sjis", "ujis", "eucjpms", "armscii8"})
"""Character sets in which two codes are the same Unicode character.

Text that is converted to Unicode and back always gets the same one of them.
"""

ENTRY_BYTES = 4
_THREE_BYTES = 0x8F  # in the EUC charsets it opens a character of three bytes
_EUC = frozenset({"ujis", "eucjpms"})
_DIGITS = range(0x30, 0x3A)
_LEADS = range(0x81, 0xFF)
_LINEAR = 12600  # characters of gb18030's four bytes that share the first


@cache
def single_byte_table(charset: str) -> bytes:
    """Return 256 entries of four bytes each: the length of the UTF-8 form (0: no such character), the form, zeros.

    Raises KeyError for a character set that is not single-byte.
    """
    from unshard.mysql.charset_differences import NOTHING, SINGLE_DIFFERENT, UPPER_HALVES

    codec = SINGLE_BYTE[charset]
    different: dict[int, str | None] = dict(SINGLE_DIFFERENT.get(charset, {}))
    for byte, text in enumerate(UPPER_HALVES.get(charset, ""), 128):
        different[byte] = None if text == NOTHING else text
    return b"".join(
        _entry(different[byte] if byte in different else bytes([byte]).decode(codec, "ignore")) for byte in range(256)
    )


@cache
def multi_byte_table(charset: str) -> bytes:
    """Return entries like those of `single_byte_table` for every character of a multi-byte character set.

    The first 256 entries are for one-byte characters, the next 65,536 for pairs (first byte * 256 + second). The EUC
    character sets have 65,536 more, for the two bytes after 0x8F. gb18030 has `_LINEAR` * 4 more, for the four-byte
    characters of the basic plane in their order; the four-byte codes from 0x90308130 on are U+10000 and up in order,
    and need no entries. Raises KeyError for another character set.
    """
    from unshard.mysql.charset_differences import multi_byte_different

    codec = MULTI_BYTE[charset]
    different = multi_byte_different(charset)

    def entry(raw: bytes) -> bytes:
        if raw in different:
            return _entry(different[raw])
        try:
            text = raw.decode(codec)
        except UnicodeDecodeError:
            return bytes(ENTRY_BYTES)
        return _entry(text if len(text) == 1 else None)

    singles = [entry(bytes([byte])) for byte in range(256)]
    none = bytes(ENTRY_BYTES * 256)
    parts = singles + [
        none if singles[first][0] else b"".join(entry(bytes([first, second])) for second in range(256))
        for first in range(256)
    ]
    if charset in _EUC:
        parts += [entry(bytes([_THREE_BYTES, second, third])) for second in range(256) for third in range(256)]
    if charset == "gb18030":
        parts += [
            entry(bytes([first, second, third, fourth]))
            for first in _LEADS[:4]
            for second in _DIGITS
            for third in _LEADS
            for fourth in _DIGITS
        ]
    return b"".join(parts)


def _entry(text: str | None) -> bytes:
    form = (text or "").encode()
    return bytes([len(form)]) + form.ljust(ENTRY_BYTES - 1, b"\0")


def decoding(charset: str) -> tuple[str, bytes | None]:
    """Return how the kernels decode text of a character set: the reader's name and its table, if it needs one.

    Raises KeyError for an unknown character set.
    """
    if charset in PLAIN:
        return "bytes", None
    if charset in SINGLE_BYTE:
        return "singles", single_byte_table(charset)
    if charset in UNICODE:
        return charset, None
    kind = "triples" if charset in _EUC else "quads" if charset == "gb18030" else "pairs"
    return kind, multi_byte_table(charset)


def to_text(value: bytes, charset: str) -> str:
    """Decode a short text, such as a name or an ENUM member.

    Raises UnicodeDecodeError; KeyError for an unknown character set.
    """
    return "".join(text for _, text in _characters(value, charset))


def statement_text(value: bytes, charset: str) -> str:
    """Decode a statement whose client wrote it in `charset`.

    Raises UnicodeDecodeError; KeyError for an unknown character set. The server interprets quotes and escapes before it
    converts the text. A character that becomes ASCII by the conversion, or that stops being ASCII, would change the
    meaning of the statement, so it is refused. In swe7 such bytes are letters between quotes and ASCII signs elsewhere
    (`_swe7_statement`).
    """
    if charset == "swe7":
        return _swe7_statement(value)
    if charset in PLAIN:
        return value.decode()
    if value.isascii():
        return value.decode()
    pieces = []
    at = 0
    for raw, text in _characters(value, charset):
        if (raw.isascii() or text.isascii()) and raw != text.encode():
            raise UnicodeDecodeError(charset, value, at, at + len(raw), "the server takes it for another sign")
        pieces.append(text)
        at += len(raw)
    return "".join(pieces)


def _swe7_statement(value: bytes) -> str:
    """Decode a statement in swe7, in which ten ASCII signs are letters.

    Outside quotes, the server treats the backtick, `@` and `|` as the ASCII signs; text between quotes it converts.
    Other such bytes outside quotes are refused. A backslash within a text is refused too: it is an escape to the server
    and a letter to the client.
    """
    pieces = []
    quote = ""
    for at, byte in enumerate(value):
        sign = chr(byte)
        letter = _at(single_byte_table("swe7"), byte)
        if sign == quote:
            quote = ""
        elif quote:
            sign = "" if sign == "\\" and quote != "`" else letter
        elif sign in "'\"`":
            quote = sign
        elif sign != letter and sign not in "@|":
            sign = ""
        if not sign:
            raise UnicodeDecodeError("swe7", value, at, at + 1, "the server takes it for another sign")
        pieces.append(sign)
    return "".join(pieces)


def _characters(value: bytes, charset: str) -> Iterator[tuple[bytes, str]]:
    """Yield each character with its bytes. Text in UTF-8 or UTF-16 is yielded as a whole."""
    if charset in PLAIN or charset in UNICODE:
        text = value.decode("ascii" if charset == "ascii" else UNICODE.get(charset, "utf-8"))
        if charset == "ucs2" and not text.isascii() and max(text) > "\uffff":
            raise UnicodeDecodeError(charset, value, 0, len(value), "surrogates are no characters of it")
        yield value, text
        return
    table = decoding(charset)[1] or b""
    at = 0
    while at < len(value):
        size, text = _character(value[at : at + 4], charset, table)
        if not size:
            raise UnicodeDecodeError(charset, value, at, at + 1, "no such character")
        yield value[at : at + size], text
        at += size


def _character(raw: bytes, charset: str, table: bytes) -> tuple[int, str]:
    """Return the number of bytes of the first character of `raw`, and the character; 0 bytes if there is none."""
    first, second, third, fourth = (*raw, 0, 0, 0)[:4]
    if text := _at(table, first):
        return 1, text
    if charset in SINGLE_BYTE or len(raw) < 2:
        return 0, ""
    if text := _at(table, 256 * (1 + first) + second):
        return 2, text
    if charset in _EUC and first == _THREE_BYTES and (text := _at(table, 256 * (257 + second) + third)):
        return 3, text
    if charset == "gb18030" and {first, third} <= set(_LEADS) and {second, fourth} <= set(_DIGITS):
        number = (((first - 0x81) * 10 + second - 0x30) * 126 + third - 0x81) * 10 + fourth - 0x30
        if number < 4 * _LINEAR:
            text = _at(table, 256 * 257 + number)
            return (4 if text else 0), text
        code = number - 15 * _LINEAR + 0x10000
        return (4, chr(code)) if 0x10000 <= code <= 0x10FFFF else (0, "")
    return 0, ""


def _at(table: bytes, number: int) -> str:
    at = ENTRY_BYTES * number
    return table[at + 1 : at + 1 + table[at]].decode()


def known(charset: str) -> bool:
    """Return whether text of that character set can be decoded."""
    return charset in PLAIN or charset in SINGLE_BYTE or charset in MULTI_BYTE or charset in UNICODE
