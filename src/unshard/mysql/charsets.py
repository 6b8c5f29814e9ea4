"""Charsets of text columns and how their bytes become UTF-8, exactly as the server itself converts them.

Python's codecs agree with the server's tables but for a few characters, which stand here; tests hold both
together, byte by byte, on a real server. Characters that the server can't convert have no entry: meeting one is an
error, never a question mark.
"""

from __future__ import annotations

from functools import cache

PLAIN = frozenset({"utf8", "utf8mb3", "utf8mb4", "ascii"})
"""Charsets whose bytes are UTF-8 already."""

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
}
MULTI_BYTE = {
    "gbk": "gbk",
    "gb2312": "gb2312",
    "gb18030": "gb18030",
    "big5": "big5",
    "sjis": "shift_jis",
    "cp932": "cp932",
    "ujis": "euc_jp",
    "euckr": "cp949",
    "ucs2": "utf_16_be",
    "utf16": "utf_16_be",
    "utf16le": "utf_16_le",
    "utf32": "utf_32_be",
}

# Bytes that the server reads otherwise than Python's codec; None where the server has no character.
_DIFFERENT: dict[str, dict[int, str | None]] = {
    "latin1": {byte: chr(byte) for byte in (0x81, 0x8D, 0x8F, 0x90, 0x9D)},  # the holes of cp1252 are C1 controls
    "cp866": {0xFC: "ⁿ", 0xFD: "²"},
    "koi8u": {0x95: "•"},
    "greek": {0xA1: "\u02bd", 0xA2: "\u02bc", 0xA4: None, 0xA5: None, 0xAA: None},
    "hebrew": {0xAF: "‾"},
    "cp1256": dict.fromkeys((0x8A, 0x8F, 0x98, 0x9A, 0x9F, 0xAA, 0xC0, 0xFF)),
}
_DIFFERENT_TEXT = {
    "sjis": {0xFF3C: 0x5C},  # the server takes the wide backslash for the plain one
    "ujis": {0xFF3C: 0x5C},
}

ENTRY_BYTES = 4


@cache
def single_byte_table(charset: str) -> bytes:
    """256 entries of four bytes: the length of the UTF-8 form (0: no such character), the form, zeros.

    Raises KeyError for a charset that is not single-byte.
    """
    codec = SINGLE_BYTE[charset]
    different = _DIFFERENT.get(charset, {})
    table = bytearray()
    for byte in range(256):
        text = different[byte] if byte in different else bytes([byte]).decode(codec, "ignore")
        form = (text or "").encode()
        table += bytes([len(form)]) + form.ljust(ENTRY_BYTES - 1, b"\0")
    return bytes(table)


def decode(value: bytes, charset: str) -> str:
    """Text of a multi-byte charset. Raises UnicodeDecodeError, KeyError for another charset."""
    text = value.decode(MULTI_BYTE[charset])
    return text.translate(_DIFFERENT_TEXT[charset]) if charset in _DIFFERENT_TEXT else text


def to_text(value: bytes, charset: str) -> str:
    """A short text of any known charset: names, members. Raises UnicodeDecodeError, KeyError for another charset."""
    if charset in PLAIN:
        return value.decode()
    if charset not in SINGLE_BYTE:
        return decode(value, charset)
    table = single_byte_table(charset)
    entries = [table[ENTRY_BYTES * byte : ENTRY_BYTES * (byte + 1)] for byte in value]
    for at, entry in enumerate(entries):
        if not entry[0]:
            raise UnicodeDecodeError(charset, value, at, at + 1, "no such character")
    return b"".join(entry[1 : 1 + entry[0]] for entry in entries).decode()


def known(charset: str) -> bool:
    """Whether text of that charset can be decoded."""
    return charset in PLAIN or charset in SINGLE_BYTE or charset in MULTI_BYTE
