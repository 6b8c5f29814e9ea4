"""Collations for a TiDB target.

TiDB has a dozen of the 1,300 collations of MySQL and MariaDB, none of them for a language. `nearest` takes the first of
these that the target has:

| the source's collation | taken |
|---|---|
| one that the target has | the same; `utf8` and `utf8mb3` are one name |
| `_bin`, `_cs`, with padding | `utf8mb4_bin` |
| `_bin`, `_cs`, without padding | `utf8mb4_0900_bin`, `utf8mb4_bin` |
| `_ci` of Unicode 5.2 and later (`520`, `0900`, `uca1400`, `myanmar`) | `utf8mb4_0900_ai_ci`, `utf8mb4_unicode_ci` |
| `_ci` of Unicode 4.0 (`unicode_ci`, `swedish_ci` … of a Unicode character set) | `utf8mb4_unicode_ci` |
| any other `_ci` | `utf8mb4_general_ci` |

Each row ends with `utf8mb4_general_ci` and `utf8mb4_bin`. Every TiDB has `utf8mb4_bin`; it has `utf8mb4_general_ci` if
its collations compare as in MySQL. A column of utf8mb3 stays utf8mb3 if that changes nothing but the length of its
keys.

The first collation of a row is the one that compares the fewest texts differently, with one exception: a collation that
distinguishes upper and lower case becomes one that compares code points. It makes no different texts equal, so no
unique key refuses rows. `difference` finds how two collations differ in comparing texts.

latin1 and gbk are unchanged for those of their collations that TiDB has. TiDB stores the text of both as UTF-8, and its
gbk has all characters of MySQL's.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass

_UNICODE = frozenset({"utf8", "utf8mb3", "utf8mb4", "ucs2", "utf16", "utf16le", "utf32"})
_NEWER = ("520", "0900", "uca1400", "myanmar")
_GENERAL = ("general", "tolower")
_EXACT = re.compile(r"bin$|_cs(?:_ks)?$")
_BINARY = "binary"
_LAST = ("general_ci", "bin")


def nearest(collation: str, available: Collection[str], wished: Mapping[str, str]) -> str:
    """Return the target's collation for one of the source.

    `available` are the names that the target lists. `wished` has, by collation, the one that the user wants in its
    place; it is returned unchanged even if the target lacks it. Names are compared without regard to case. MariaDB's
    names without a character set (`uca1400_ai_ci`) are those of utf8mb4. An unknown name is interpreted by its parts.
    Raises ValueError if the target has none of the candidates, which is the case for no TiDB.
    """
    asked = _one_name(collation)
    for key, wish in wished.items():
        if _one_name(key) == asked:
            return wish
    there = {_one_name(name): name for name in available}
    for candidate in _candidates(asked):
        if candidate in there:
            return there[candidate]
    raise ValueError(f"no collation for {collation} among {sorted(available)}")


def charset_of_name(collation: str) -> str:
    """Return the character set that the name of a TiDB collation begins with."""
    return collation.partition("_")[0]


def same_collation(one: str, other: str) -> bool:
    """Return whether two names denote one collation: `utf8` and `utf8mb3` are one character set."""
    return _one_name(one) == _one_name(other)


def _candidates(collation: str) -> Iterator[str]:
    """Yield names in the order in which they are tried, with utf8 written as utf8mb3."""
    yield collation
    if collation == _BINARY:
        return
    charset, tail = _parts(collation)
    for kind in (*_kinds(charset, tail), *_LAST):
        if charset == "utf8mb3":
            yield f"utf8mb3_{kind}"
        yield f"utf8mb4_{kind}"


def _kinds(charset: str, tail: str) -> tuple[str, ...]:
    """Return the first candidates' names without their character set."""
    newer = any(mark in tail for mark in _NEWER)
    if _EXACT.search(tail):
        unpadded = "nopad" in tail or "0900" in tail
        return ("0900_bin", "bin") if unpadded else ("bin",)
    if newer:
        return "0900_ai_ci", "unicode_ci"
    return ("unicode_ci",) if charset in _UNICODE and not tail.startswith(_GENERAL) else ()


def _parts(collation: str) -> tuple[str, str]:
    charset, _, tail = collation.partition("_")
    return ("utf8mb4", collation) if charset in _NEWER else (charset, tail)


def _one_name(collation: str) -> str:
    name = collation.lower()
    return f"utf8mb3_{name.removeprefix('utf8_')}" if name.startswith("utf8_") else name


SAMPLE = (
    *(chr(code) for code in range(0x41, 0x250) if chr(code).isalpha() and not chr(code).islower()),
    *"aäß",
    *(chr(code) for code in range(0x386, 0x3B0) if chr(code).isalpha() and not chr(code).islower()),
    *"ως",
    *(chr(code) for code in range(0x400, 0x430)),
    *"ҐҒҖҚҢҮҰҲҶҺӘӨ",
    *"жＡａぁあアァｱ가漢😀😁",
    "AE", "OE", "SS", "UE", "A ",
)  # fmt: skip
"""Texts by which collations are compared: each letter of scripts with case or accents, and some of other scripts."""


@dataclass(frozen=True, slots=True)
class Difference:
    """The difference of two collations on `SAMPLE`. Each entry lists one text of each group, with ` = ` between them.

    `equal` lists texts that are equal only in the target's collation, `apart` those that are equal only in the
    source's.
    """

    equal: tuple[str, ...]
    apart: tuple[str, ...]


def difference(here: Mapping[str, object], there: Mapping[str, object]) -> Difference:
    """Compare two collations by which texts they make equal.

    `here` and `there` give the weight of each text in the source's and in the target's collation. Texts that only one
    side has are ignored, because the source's character set lacks them.
    """
    texts = [text for text in here if text in there]
    return Difference(_joined(texts, here, there), _joined(texts, there, here))


def _joined(texts: list[str], fine: Mapping[str, object], coarse: Mapping[str, object]) -> tuple[str, ...]:
    """Return the groups of texts that are equal by `coarse` but not by `fine`, with the first text of each weight."""
    groups: dict[object, dict[object, str]] = {}
    for text in texts:
        groups.setdefault(coarse[text], {}).setdefault(fine[text], text)
    return tuple(" = ".join(map(_shown, kinds.values())) for kinds in groups.values() if len(kinds) > 1)


def _shown(text: str) -> str:
    return f"'{text}'" if text.endswith(" ") else text
