"""The characters that a server decodes differently from Python, by character set."""

from __future__ import annotations

from collections.abc import Iterator

NOTHING = "\ufffd"
"""Marks a byte in a table for which the server has no character."""

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
"""Bytes 128 to 255 of the single-byte character sets for which Python has no codec. Their lower half is ASCII."""

SINGLE_DIFFERENT: dict[str, dict[int, str | None]] = {
    "swe7": {**dict(zip(b"@[\\]^`{|}~", "ÉÄÖÅÜéäöåü", strict=True)), 0x7F: None},
    "latin1": {byte: chr(byte) for byte in (0x81, 0x8D, 0x8F, 0x90, 0x9D)},  # the holes of cp1252 are C1 controls
    "cp866": {0xFC: "ⁿ", 0xFD: "²"},
    "koi8u": {0x95: "•"},
    "greek": {0xA1: "\u02bd", 0xA2: "\u02bc", 0xA4: None, 0xA5: None, 0xAA: None},
    "hebrew": {0xAF: "‾"},
    "cp1256": dict.fromkeys((0x8A, 0x8F, 0x98, 0x9A, 0x9F, 0xAA, 0xC0, 0xFF)),
}
"""Bytes that the server decodes differently from Python's codec; None if the server has no character for the byte."""


def multi_byte_different(charset: str) -> dict[bytes, str | None]:
    """Return the characters that the server decodes differently from Python, by their bytes; None for no character."""
    return dict(_DIFFERENT[charset]()) if charset in _DIFFERENT else {}


Differences = Iterator[tuple[bytes, str | None]]


def _cp932() -> Differences:
    for byte in (0x80, 0xA0, 0xFD, 0xFE, 0xFF):
        yield bytes([byte]), None


def _sjis() -> Differences:
    yield b"\x81\x5f", "\\"  # the server decodes the wide backslash as the plain one


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
    """Yield rows 85 to 94 of both planes, which are private characters from U+E000 on."""
    for row in range(10):
        for cell in range(94):
            yield bytes([0xF5 + row, 0xA1 + cell]), chr(0xE000 + 94 * row + cell)
            yield bytes([0x8F, 0xF5 + row, 0xA1 + cell]), chr(0xE3AC + 94 * row + cell)


def _ujis() -> Differences:
    yield from _user_defined()
    yield b"\xa1\xc0", "\\"


_IBM_CHARACTERS = 388


def _eucjpms() -> Differences:
    """Yield the differences for cp932's characters.

    They are Microsoft's wide signs, NEC's row 13, and IBM's kanji after JIS X 0212.
    """
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
