"""Collations by their ids in the binlog and in the wire protocol: their names and character sets.

The ids are those of MySQL 9.7, MariaDB 10.11 and MariaDB 11.8.
"""

from __future__ import annotations

_NAMES = {
    "armscii8": "32 general_ci 64 bin",
    "ascii": "11 general_ci 65 bin",
    "big5": "1 chinese_ci 84 bin",
    "cp1250": "26 general_ci 34 czech_cs 44 croatian_ci 66 bin 99 polish_ci",
    "cp1251": "14 bulgarian_ci 23 ukrainian_ci 50 bin 51 general_ci 52 general_cs",
    "cp1256": "57 general_ci 67 bin",
    "cp1257": "29 lithuanian_ci 58 bin 59 general_ci",
    "cp850": "4 general_ci 80 bin",
    "cp852": "40 general_ci 81 bin",
    "cp866": "36 general_ci 68 bin",
    "cp932": "95 japanese_ci 96 bin",
    "dec8": "3 swedish_ci 69 bin",
    "eucjpms": "97 japanese_ci 98 bin",
    "euckr": "19 korean_ci 85 bin",
    "gb18030": "248 chinese_ci 249 bin 250 unicode_520_ci",
    "gb2312": "24 chinese_ci 86 bin",
    "gbk": "28 chinese_ci 87 bin",
    "geostd8": "92 general_ci 93 bin",
    "greek": "25 general_ci 70 bin",
    "hebrew": "16 general_ci 71 bin",
    "hp8": "6 english_ci 72 bin",
    "keybcs2": "37 general_ci 73 bin",
    "koi8r": "7 general_ci 74 bin",
    "koi8u": "22 general_ci 75 bin",
    "latin1": "5 german1_ci 8 swedish_ci 15 danish_ci 31 german2_ci 47 bin 48 general_ci 49 general_cs 94 spanish_ci",
    "latin2": "2 czech_cs 9 general_ci 21 hungarian_ci 27 croatian_ci 77 bin",
    "latin5": "30 turkish_ci 78 bin",
    "latin7": "20 estonian_cs 41 general_ci 42 general_cs 79 bin",
    "macce": "38 general_ci 43 bin",
    "macroman": "39 general_ci 53 bin",
    "sjis": "13 japanese_ci 88 bin",
    "swe7": "10 swedish_ci 82 bin",
    "tis620": "18 thai_ci 89 bin",
    "ucs2": "35 general_ci 90 bin 159 general_mysql500_ci 640 croatian_ci 641 myanmar_ci 642 thai_520_w2",
    "ujis": "12 japanese_ci 91 bin",
    "utf16": "54 general_ci 55 bin 672 croatian_ci 673 myanmar_ci 674 thai_520_w2",
    "utf16le": "56 general_ci 62 bin",
    "utf32": "60 general_ci 61 bin 736 croatian_ci 737 myanmar_ci 738 thai_520_w2",
    "utf8mb3": "33 general_ci 76 tolower_ci 83 bin 223 general_mysql500_ci 576 croatian_ci 577 myanmar_ci 578 "
    "thai_520_w2 579 general1400_as_ci",
    "utf8mb4": "45 general_ci 46 bin 608 croatian_ci 609 myanmar_ci 610 thai_520_w2 611 general1400_as_ci",
}
"""By character set: ids, each followed by the collation's name without the set's name.

Five ids from 576 on exist only in MariaDB.
"""

_UNICODE_FROM = {"utf16": 101, "ucs2": 128, "utf32": 160, "utf8mb3": 192, "utf8mb4": 224}
_UNICODE = (
    "unicode_ci", "icelandic_ci", "latvian_ci", "romanian_ci", "slovenian_ci", "polish_ci", "estonian_ci",
    "spanish_ci", "swedish_ci", "turkish_ci", "czech_ci", "danish_ci", "lithuanian_ci", "slovak_ci",
    "spanish2_ci", "roman_ci", "persian_ci", "esperanto_ci", "hungarian_ci", "sinhala_ci", "german2_ci",
    "croatian_ci", "unicode_520_ci", "vietnamese_ci",
)  # fmt: skip
"""The collations of UCA 4.0 and 5.2. Each of these character sets has them in this order."""

_UCA_9 = (
    "255 0900_ai_ci 256 de_pb_0900_ai_ci 257 is_0900_ai_ci 258 lv_0900_ai_ci 259 ro_0900_ai_ci 260 sl_0900_ai_ci "
    "261 pl_0900_ai_ci 262 et_0900_ai_ci 263 es_0900_ai_ci 264 sv_0900_ai_ci 265 tr_0900_ai_ci 266 cs_0900_ai_ci "
    "267 da_0900_ai_ci 268 lt_0900_ai_ci 269 sk_0900_ai_ci 270 es_trad_0900_ai_ci 271 la_0900_ai_ci 273 "
    "eo_0900_ai_ci 274 hu_0900_ai_ci 275 hr_0900_ai_ci 277 vi_0900_ai_ci 278 0900_as_cs 279 de_pb_0900_as_cs 280 "
    "is_0900_as_cs 281 lv_0900_as_cs 282 ro_0900_as_cs 283 sl_0900_as_cs 284 pl_0900_as_cs 285 et_0900_as_cs 286 "
    "es_0900_as_cs 287 sv_0900_as_cs 288 tr_0900_as_cs 289 cs_0900_as_cs 290 da_0900_as_cs 291 lt_0900_as_cs 292 "
    "sk_0900_as_cs 293 es_trad_0900_as_cs 294 la_0900_as_cs 296 eo_0900_as_cs 297 hu_0900_as_cs 298 hr_0900_as_cs "
    "300 vi_0900_as_cs 303 ja_0900_as_cs 304 ja_0900_as_cs_ks 305 0900_as_ci 306 ru_0900_ai_ci 307 ru_0900_as_cs "
    "308 zh_0900_as_cs 309 0900_bin 310 nb_0900_ai_ci 311 nb_0900_as_cs 312 nn_0900_ai_ci 313 nn_0900_as_cs 314 "
    "sr_latn_0900_ai_ci 315 sr_latn_0900_as_cs 316 bs_0900_ai_ci 317 bs_0900_as_cs 318 bg_0900_ai_ci 319 "
    "bg_0900_as_cs 320 gl_0900_ai_ci 321 gl_0900_as_cs 322 mn_cyrl_0900_ai_ci 323 mn_cyrl_0900_as_cs "
)
"""The collations of UCA 9.0, which only utf8mb4 has."""

_UNPADDED, _UCA_14 = 1024, 2048
_UCA_14_CHARSETS = ("utf8mb3", "utf8mb4", "ucs2", "utf16", "utf32")
_UCA_14_LANGUAGES = {
    0: "", 1: "icelandic", 2: "latvian", 3: "romanian", 4: "slovenian", 5: "polish", 6: "estonian", 7:
    "spanish", 8: "swedish", 9: "turkish", 10: "czech", 11: "danish", 12: "lithuanian", 13: "slovak", 14:
    "spanish2", 15: "roman", 16: "persian", 17: "esperanto", 18: "hungarian", 19: "sinhala", 20: "german2", 23:
    "vietnamese", 24: "croatian",
}  # fmt: skip
_UCA_14_FLAVOURS = ("ai_ci", "ai_cs", "as_ci", "as_cs", "nopad_ai_ci", "nopad_ai_cs", "nopad_as_ci", "nopad_as_cs")


def _by_id() -> dict[int, str]:
    found: dict[int, str] = {}
    for charset, words in (*_NAMES.items(), ("utf8mb4", _UCA_9)):
        parts = words.split()
        found.update((int(number), f"{charset}_{name}") for number, name in zip(parts[::2], parts[1::2], strict=True))
    for charset, first in _UNICODE_FROM.items():
        found.update((first + place, f"{charset}_{name}") for place, name in enumerate(_UNICODE))
    return {**found, 63: "binary"}


_BY_ID = _by_id()


def collation_of(number: int) -> str:
    """Return the name of a collation. Raises KeyError for an unknown id.

    In MariaDB the id of a collation without padding is 1024 above that of the padded one. Collations of UCA 14 have ids
    from 2048 on: 256 for each character set, 8 for each language. MariaDB spells five of MySQL's names
    `…_croatian_mysql561_ci`.
    """
    if number < _UNPADDED:
        return _BY_ID[number]
    if number < _UCA_14:
        stem, _, end = _BY_ID[number - _UNPADDED].rpartition("_")
        return f"{stem}_nopad_{end}"
    charset = dict(enumerate(_UCA_14_CHARSETS))[(number - _UCA_14) >> 8]
    language = _UCA_14_LANGUAGES[(number & 255) >> 3]
    return "_".join(filter(None, (charset, "uca1400", language, _UCA_14_FLAVOURS[number & 7])))


def charset_of(number: int) -> str:
    """Return the character set of a collation id, by its name in `information_schema`.

    Raises KeyError for an unknown id.
    """
    return collation_of(number).partition("_")[0]


_DEFAULTS = {
    "chinese_ci": "big5 gb2312 gbk gb18030",
    "japanese_ci": "ujis sjis cp932 eucjpms",
    "swedish_ci": "dec8 latin1 swe7",
    "korean_ci": "euckr",
    "thai_ci": "tis620",
    "turkish_ci": "latin5",
    "english_ci": "hp8",
}
_DEFAULT_OF = {charset: f"{charset}_{end}" for end, charsets in _DEFAULTS.items() for charset in charsets.split()}


def default_collation(charset: str) -> str:
    """Return the collation that a statement means if it names only this character set.

    Servers differ in the default for utf8mb4 and, from MariaDB 11.5 on, in the defaults for all Unicode character sets.
    This function returns `general_ci`, the default of older servers. Newer servers print another default in SHOW
    CREATE, and log it with each statement.
    """
    name = charset.lower()
    return name if name == "binary" else _DEFAULT_OF.get(name, f"{name}_general_ci")
