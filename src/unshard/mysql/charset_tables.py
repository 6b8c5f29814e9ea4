"""Where the servers' charsets and Python's codecs part: what `charsets.py` adds to the codecs.

MariaDB and MySQL have the same tables; tests hold every byte and every pair of bytes to both. The server's U+FFFD
(and `?`) for bytes that stand for nothing is no character here.
"""

from __future__ import annotations

from collections.abc import Iterator

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
