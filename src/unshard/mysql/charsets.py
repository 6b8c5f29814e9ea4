"""Where the servers' charsets and Python's codecs part: what `charsets.py` adds to the codecs.

MariaDB and MySQL have the same tables; tests hold every byte and every pair of bytes to both. The server's U+FFFD
(and `?`) for bytes that stand for nothing is no character here.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import cache

NOTHING = "\ufffd"
"""In a table: the server has no character for this byte."""

UPPER_HALVES = {
    "dec8": (
        "".join(map(chr, range(0x80, 0xA0))) + "\xa0¡¢£�¥�§¤©ª«����°±²³�µ¶·�¹º»¼½�¿"
        "ÀÁÂÃÄÅÆÇÈÉÊËÌÍÎÏ�ÑÒÓÔÕÖŒØÙÚÛÜŸ�ßàáâãäåæçèéêëìíîï�ñòóôõöœøùúûüÿ��"
    ),
    "armscii8": (
        "".join(map(chr, range(0x80, 0xA0)))
        + "\xa0❁§։)(»«—.՝,-՟…՜՛՞"
        + "".join(chr(upper) + chr(upper + 0x30) for upper in range(0x531, 0x557))
        + "’'"
    ),
    "geostd8": (
        "€�‚�„…†‡�‰�‹�����‘’“”•–—���›����"
        + "".join(map(chr, range(0xA0, 0xC0)))
        + "აბგდევზჱთიკლმნჲოპჟრსტჳუფქღყშჩცძწჭხჴჯჰჵ"
        + "�" * 23
        + "№��"
    ),
    "keybcs2": (
        "ČüéďäĎŤčěĚĹÍľĺÄÁÉžŽôöÓůÚýÖÜŠĽÝŘťáíóúňŇŮÔšřŕŔ¼¡«»░▒▓│┤╡╢╖╕╣║╗╝╜╛┐└┴┬├─┼╞╟╚╔╩╦╠═╬╧╨╤╥╙╘╒╓╫╪┘┌█▄▌▐▀"
        "αßΓπΣσµτΦΘΩδ∞φε∩≡±≥≤⌠⌡÷≈°∙·√ⁿ²■\xa0"
    ),
}
"""Bytes 128 to 255 of the single-byte charsets that Python has no codec for; below they are ASCII."""

SINGLE_DIFFERENT: dict[str, dict[int, str | None]] = {
    "swe7": {**dict(zip(b"@[\\]^`{|}~", "ÉÄÖÅÜéäöåü", strict=True)), 0x7F: None},
    "latin1": {byte: chr(byte) for byte in (0x81, 0x8D, 0x8F, 0x90, 0x9D)},  # the holes of cp1252 are C1 controls
    "cp866": {0xFC: "ⁿ", 0xFD: "²"},
    "koi8u": {0x95: "•"},
    "greek": {0xA1: "\u02bd", 0xA2: "\u02bc", 0xA4: None, 0xA5: None, 0xAA: None},
    "hebrew": {0xAF: "‾"},
    "cp1256": dict.fromkeys((0x8A, 0x8F, 0x98, 0x9A, 0x9F, 0xAA, 0xC0, 0xFF)),
}
"""Bytes that the server reads otherwise than Python's codec; None where the server has no character."""


def multi_byte_different(charset: str) -> dict[bytes, str | None]:
    """The same for the multi-byte charsets, by the bytes of one character."""
    return dict(_DIFFERENT[charset]()) if charset in _DIFFERENT else {}


Differences = Iterator[tuple[bytes, str | None]]


def _cp932() -> Differences:
    for byte in (0x80, 0xA0, 0xFD, 0xFE, 0xFF):
        yield bytes([byte]), None


def _sjis() -> Differences:
    yield b"\x81\x5f", "\\"  # the server takes the wide backslash for the plain one


def _big5() -> Differences:
    for number, text in enumerate("碁銹裏墻恒粧嫺"):
        yield bytes([0xF9, 0xD6 + number]), text
    for pair in (0xA15A, 0xA1C3, 0xA1C5, 0xA1FE, 0xA240, 0xA2CC, 0xA2CE):
        yield pair.to_bytes(2, "big"), None


def _gb18030() -> Differences:
    # the table of 2005; Python's is that of 2000
    yield b"\xa8\xbc", "\u1e3f"
    yield b"\x81\x35\xf4\x37", "\ue7c7"


def _user_defined() -> Differences:
    """Rows 85 to 94 of both planes stand for private characters, U+E000 on."""
    for row in range(10):
        for cell in range(94):
            yield bytes([0xF5 + row, 0xA1 + cell]), chr(0xE000 + 94 * row + cell)
            yield bytes([0x8F, 0xF5 + row, 0xA1 + cell]), chr(0xE3AC + 94 * row + cell)


def _ujis() -> Differences:
    yield from _user_defined()
    yield b"\xa1\xc0", "\\"


_IBM_CHARACTERS = 388


def _eucjpms() -> Differences:
    """EUC for the characters of cp932: Microsoft's wide signs, NEC's row 13, IBM's kanji behind JIS X 0212."""
    yield from _user_defined()
    for pair, text in zip((0xA1C1, 0xA1C2, 0xA1DD, 0xA1F1, 0xA1F2, 0xA2CC), "～∥－￠￡￢", strict=True):
        yield pair.to_bytes(2, "big"), text
    yield b"\x8f\xa2\xb7", "～"
    yield b"\x8f\xa2\xc3", "￤"
    for cell in range(94):
        if not (text := bytes([0x87, 0x40 + cell + (cell > 62)]).decode("cp932", "ignore")).isascii():
            yield bytes([0xAD, 0xA1 + cell]), text
    trails = [trail for trail in range(0x40, 0xFD) if trail != 0x7F]
    pairs = [bytes([lead, trail]) for lead in (0xFA, 0xFB, 0xFC) for trail in trails][:_IBM_CHARACTERS]
    ibm = b"".join(pairs).decode("cp932")
    own = [text for text in ibm if text == "№" or not (text in "￢￤" or text.encode("euc_jp", "ignore"))]
    for number, text in enumerate(own, 0xF3 - 0xA1):
        yield bytes([0x8F, 0xF3 + number // 94, 0xA1 + number % 94]), text


_DIFFERENT = {
    "cp932": _cp932,
    "sjis": _sjis,
    "big5": _big5,
    "gb18030": _gb18030,
    "ujis": _ujis,
    "eucjpms": _eucjpms,
}


# Charsets of text columns and how their bytes become UTF-8, exactly as the server itself converts them.
#
# Python's codecs agree with the server's tables but for what stands in `charset_tables.py`; tests hold both together,
# byte by byte, on real servers. Characters that the server can't convert have no entry: meeting one is an error,
# never a question mark.


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
    **dict.fromkeys(("swe7", *UPPER_HALVES), "ascii"),
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
"""Charsets with letters that take four bytes in UTF-8, which information_schema and SHOW CREATE TABLE can't show."""

TWO_CODES = frozenset({"cp932", "sjis", "ujis", "eucjpms", "armscii8"})
"""Charsets in which two codes are one character of Unicode: text that goes through Unicode gets one of them back."""

ENTRY_BYTES = 4
_THREE_BYTES = 0x8F  # in the EUC charsets it opens a character of three bytes
_EUC = frozenset({"ujis", "eucjpms"})
_DIGITS = range(0x30, 0x3A)
_LEADS = range(0x81, 0xFF)
_LINEAR = 12600  # characters of gb18030's four bytes that share the first


@cache
def single_byte_table(charset: str) -> bytes:
    """256 entries of four bytes: the length of the UTF-8 form (0: no such character), the form, zeros.

    Raises KeyError for a charset that is not single-byte.
    """
    codec = SINGLE_BYTE[charset]
    different: dict[int, str | None] = dict(SINGLE_DIFFERENT.get(charset, {}))
    for byte, text in enumerate(UPPER_HALVES.get(charset, ""), 128):
        different[byte] = None if text == NOTHING else text
    return b"".join(
        _entry(different[byte] if byte in different else bytes([byte]).decode(codec, "ignore")) for byte in range(256)
    )


@cache
def multi_byte_table(charset: str) -> bytes:
    """Entries as `single_byte_table` has them, for every character of a multi-byte charset.

    First 256 for the characters of one byte, then 65,536 for pairs (first byte * 256 + second). The EUC charsets have
    65,536 more, for the two bytes behind 0x8F. gb18030 has `_LINEAR` * 4 more for the four-byte characters of the
    basic plane, in their order; what comes behind, from 0x90308130 on, is U+10000 and up in order. Raises KeyError
    for another charset.
    """
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
    """How the kernels read text of that charset: the reader's name and the table it goes by, if any.

    Raises KeyError for an unknown charset.
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
    """A short text of any known charset: names, members. Raises UnicodeDecodeError, KeyError for another charset."""
    return "".join(text for _, text in _characters(value, charset))


def statement_text(value: bytes, charset: str) -> str:
    """A statement whose client wrote it in `charset`. Raises UnicodeDecodeError, KeyError for another charset.

    The server reads its quotes and escapes before it converts, so a character that would turn into one of ASCII, or
    out of one, would change what the statement says: it is refused. In swe7 such bytes are letters between quotes and
    the signs of ASCII elsewhere (`_swe7_statement`).
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
    """A statement of swe7, where ten signs of ASCII are letters.

    The server takes the backtick, `@` and `|` for ASCII's own signs wherever no quotes are open, and converts what
    stands between quotes. Other such bytes outside of quotes are refused, and so is a backslash within a text, which
    is an escape to the server and a letter to the client.
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
    """Each character with its bytes, those of UTF-8 and UTF-16 in one piece."""
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
    """The first character of `raw` and the number of its bytes, 0 where there is none."""
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
    """Whether text of that charset can be decoded."""
    return charset in PLAIN or charset in SINGLE_BYTE or charset in MULTI_BYTE or charset in UNICODE
