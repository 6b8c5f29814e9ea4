"""Collation ids, as the binlog and the wire protocol have them, and the charset that each belongs to."""

from __future__ import annotations

_RANGES = {
    "armscii8": "32 64",
    "ascii": "11 65",
    "big5": "1 84",
    "binary": "63",
    "cp1250": "26 34 44 66 99",
    "cp1251": "14 23 50-52",
    "cp1256": "57 67",
    "cp1257": "29 58-59",
    "cp850": "4 80",
    "cp852": "40 81",
    "cp866": "36 68",
    "cp932": "95-96",
    "dec8": "3 69",
    "eucjpms": "97-98",
    "euckr": "19 85",
    "gb18030": "248-250",
    "gb2312": "24 86",
    "gbk": "28 87",
    "geostd8": "92-93",
    "greek": "25 70",
    "hebrew": "16 71",
    "hp8": "6 72",
    "keybcs2": "37 73",
    "koi8r": "7 74",
    "koi8u": "22 75",
    "latin1": "5 8 15 31 47-49 94",
    "latin2": "2 9 21 27 77",
    "latin5": "30 78",
    "latin7": "20 41-42 79",
    "macce": "38 43",
    "macroman": "39 53",
    "sjis": "13 88",
    "swe7": "10 82",
    "tis620": "18 89",
    "ucs2": "35 90 128-159 640-642",
    "ujis": "12 91",
    "utf16": "54-55 101-124 672-674",
    "utf16le": "56 62",
    "utf32": "60-61 160-183 736-738",
    "utf8mb3": "33 76 83 192-223 576-579",
    "utf8mb4": "45-46 224-247 255-323 608-611",
}
"""Ids below 1024 by charset, as MySQL 9.7 and MariaDB 10.11 and 11.8 list them."""

_BY_ID = {
    number: charset
    for charset, ranges in _RANGES.items()
    for first, _, last in (part.partition("-") for part in ranges.split())
    for number in range(int(first), int(last or first) + 1)
}
_UNPADDED, _UCA1400 = 1024, 2048
_UCA1400_CHARSETS = ("utf8mb3", "utf8mb4", "ucs2", "utf16", "utf32")  # 256 ids each


def charset_of(collation: int) -> str:
    """The charset of a collation id, as `information_schema` calls it. Raises KeyError for an unknown id.

    MariaDB numbers a collation without padding 1024 above the one with it, and those of UCA 14 from 2048 on.
    """
    if collation < _UNPADDED:
        return _BY_ID[collation]
    if collation < _UCA1400:
        return _BY_ID[collation - _UNPADDED]
    return dict(enumerate(_UCA1400_CHARSETS))[(collation - _UCA1400) >> 8]
