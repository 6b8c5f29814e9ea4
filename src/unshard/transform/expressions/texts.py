"""Compares texts as a collation does: by code point for `_bin`, and by *plain* texts for collations that fold.

A collation folds if it treats different characters as equal. `folds.json` has, for such a collation, the plain text to
which each character is equal, if there is one. A plain text is made of printable ASCII and the Han characters from
U+4E00 to U+9FA5. The file was read from WEIGHT_STRING of MariaDB and MySQL, which agree; `tests/support/folds.py` makes
it, and tests compare it with the servers. Characters that stand for several, or that a collation ignores, are in it.
Characters that are equal to no plain text become `NO_PLAIN`. Contractions (a weight for two characters together) never
have the weight of a plain character.
"""

from __future__ import annotations

import json
import re
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from unshard.transform.expressions.parse import Refused
from unshard.transform.expressions.values import ImageRows, Value

NO_PLAIN = "\uffff"
_PLAIN = re.compile("[ -~\u4e00-\u9fa5]*")
_UTF8 = frozenset({"utf8mb4", "utf8mb3"})


def folding(collation: str) -> str | None:
    """Return the table for a collation that folds, None for one that compares by code. Raises KeyError for others."""
    name = collation.replace("utf8mb3_", "utf8mb4_").replace("utf8_", "utf8mb4_").replace("_nopad_ci", "_ci")
    if name.endswith("_bin"):
        return None
    if name not in _tables():
        raise KeyError(name)
    return name


def pads(collation: str) -> bool:
    """Return whether the collation ignores blanks at the end (PAD SPACE)."""
    return "nopad" not in collation and "_0900_" not in collation


def is_plain(text: str) -> bool:
    """Return whether the text has only printable ASCII and Han characters."""
    return _PLAIN.fullmatch(text) is not None


def folds_of(collation: str) -> dict[str, str]:
    """Return, by plain text, the characters that are equal to it: hexadecimal ranges of codes."""
    return dict(_tables()[collation])


@cache
def _tables() -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = json.loads(files(__package__).joinpath("folds.json").read_text("ascii"))
    return found


class _Fold(dict[int, str]):
    """A table for `str.translate` that maps each character to a text equal to it, by default to itself."""

    def __missing__(self, code: int) -> str:
        character = chr(code)
        self[code] = character.lower() if is_plain(character) else NO_PLAIN
        return self[code]


@cache
def _fold(collation: str, single: bool) -> _Fold:
    """Return a collation's table; with `single` as LIKE sees it: one character by one, a Han character only itself.

    With `single`, whatever isn't equal to a single plain character becomes NO_PLAIN.
    """
    table = _Fold()
    for text, codes in _tables()[collation].items():
        for part in codes.split():
            first, _, last = part.partition("-")
            for code in range(int(first, 16), int(last or first, 16) + 1):
                table[code] = NO_PLAIN if single and not (len(text) == 1 and text.isascii()) else text
    return table


def _folded(texts: pa.Array, collation: str, single: bool) -> pa.Array:
    """Fold texts: printable ASCII by one kernel; each other text, once, by Python."""
    simple = pc.match_substring_regex(texts, r"\A[ -~]*\z")
    lower = pc.ascii_lower(texts)
    if pc.all(simple, min_count=0).as_py():
        return lower
    table = _fold(collation, single)
    other = texts.filter(pc.invert(simple)).dictionary_encode()
    values = pa.array([value.translate(table) for value in other.dictionary.to_pylist()], pa.string())
    return pc.replace_with_mask(lower, pc.fill_null(pc.invert(simple), False), values.take(other.indices))


def coarse(texts: pa.Array, collation: str) -> pa.Array | None:
    """Return texts in a form in which those that the collation takes for equal have the same bytes, and some others.

    None for a collation that isn't known.
    """
    try:
        table = folding(collation)
    except KeyError:
        return None
    if table is not None:
        texts = _folded(texts, table, single=False)
        texts = pc.if_else(pc.match_substring(texts, NO_PLAIN), NO_PLAIN, texts)
    return pc.utf8_rtrim(texts, characters=" ")


def comparable(value: Value, collation: str, rows: ImageRows) -> Any:
    """Return the column's texts in a form in which equal ones have the same bytes."""

    def make() -> Any:
        texts, table = value.run(rows), folding(collation)
        found = texts if table is None else _folded(texts, table, single=False)
        return pc.utf8_rtrim(found, characters=" ") if pads(collation) else found

    return rows.once((value.source, collation, "="), make) if value.source else make()


def constant_form(text: str, collation: str, charset: str, part: str) -> str:
    """Return a literal in the form of `comparable`. Raises Refused where it can't be compared faithfully."""
    _check_literal(text, collation, charset, part)
    table = folding(collation)
    found = text if table is None else text.translate(_fold(table, single=False))
    return found.rstrip(" ") if pads(collation) else found


def _check_literal(text: str, collation: str, charset: str, part: str) -> None:
    if charset not in _UTF8:
        if not text.isascii() or not is_plain(text):
            raise Refused(part, f"a {charset} column is compared with printable ASCII only")
    elif not is_plain(text) and folding(collation) is not None:
        why = f"under {collation} a literal has printable ASCII and Han characters only"
        raise Refused(part, f"{why}; write another, or COLLATE {charset}_bin behind the column")


def check(charset: str, collation: str, part: str) -> None:
    """Raise Refused for a collation that isn't known."""
    try:
        folding(collation)
    except KeyError:
        known = ", ".join(sorted(_tables()))
        raise Refused(
            part, f"collation {collation} isn't known here (known: {known}, …_bin); add COLLATE {charset}_bin"
        ) from None


def like(value: Value, pattern: str, escape: str, collation: str, charset: str, part: str) -> Any:
    """Return a function that evaluates `value LIKE pattern`. Raises Refused."""
    table = folding(collation)
    _check_literal(pattern, collation, charset, part)
    if len(escape) > 1 or (escape and not escape.isascii()) or escape in ("%", "_"):
        raise Refused(part, "ESCAPE takes one ASCII character, such as '|'")
    expression, literal = [], False
    for character in pattern:
        if literal or character not in ("%", "_", escape):
            plain = character if table is None else character.translate(_fold(table, single=True))
            expression.append(re.escape(plain) if plain.isascii() else plain)
            literal = False
        elif character == escape:
            literal = True
        else:
            expression.append(".*" if character == "%" else ".")
    if literal:
        raise Refused(part, "the pattern ends with the escape character; write what it is to escape")
    regex = rf"(?s)\A{''.join(expression)}\z"

    def run(rows: ImageRows) -> Any:
        def make() -> Any:
            texts = value.run(rows)
            return texts if table is None else _folded(texts, table, single=True)

        texts = rows.once((value.source, collation, "like"), make) if value.source else make()
        return pc.match_substring_regex(texts, regex)

    return run


def ordered(sign: str, left: Any, right: Any, padded: bool) -> Any:
    """Compare two texts by code; under PAD SPACE blanks are added to the shorter one (a tab is less than a blank)."""
    if padded:
        longest = int(max(_longest(left), _longest(right)))
        left, right = (pc.utf8_rpad(side, longest, padding=" ") for side in (left, right))
    compare = {"<": pc.less, "<=": pc.less_equal, ">": pc.greater, ">=": pc.greater_equal}[sign]
    return compare(left, right)


def _longest(texts: Any) -> int:
    found = pc.utf8_length(texts)
    return int((found if isinstance(found, pa.Scalar) else pc.max(found)).as_py() or 0)


def index_of(texts: pa.Array, members: tuple[str, ...]) -> pa.Array:
    """Return the numbers of ENUM's members from 1 on, 0 for the error value."""
    found = pc.add(pc.index_in(texts, pa.array(members, pa.string())).cast(pa.int64()), 1)
    zero = pc.fill_null(pc.equal(texts, ""), False)
    return pc.if_else(zero, pa.scalar(0, pa.int64()), found)


def lengths(texts: Any, unit: str) -> Any:
    """Return the lengths of the texts in characters, or in bytes for any other `unit`."""
    measure = pc.utf8_length if unit == "characters" else pc.binary_length
    return measure(texts).cast(pa.int64())


def mask(found: Any, count: int) -> np.ndarray:
    """Return a bool array: TRUE as true, FALSE and NULL as false."""
    if isinstance(found, pa.Scalar):
        return np.full(count, bool(found.as_py()))
    return np.asarray(pc.fill_null(found, False).to_numpy(zero_copy_only=False), dtype=bool)
