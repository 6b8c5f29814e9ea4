"""Texts of characters that a collation holds equal to plain ones, ignores, or holds equal to none; those plain ones."""

from __future__ import annotations

import random
from collections.abc import Iterator

from unshard.transform.expressions.texts import folds_of


def made_up(collation: str, count: int, seed: int) -> tuple[tuple[str, ...], list[str]]:
    """SQL of values, and for each a literal that may be equal to it."""
    chosen = random.Random(seed)
    folds = list(folds_of(collation).items())
    values, literals = [], []
    for _ in range(count):
        pieces = list(_pieces(folds, chosen))
        value = "".join(one for one, _ in pieces) + chosen.choice(("", "", " "))
        literal = "".join(plain for _, plain in pieces)
        if "\\" not in literal and "\0" not in value:
            values.append(f"CONVERT(X'{value.encode().hex()}' USING utf8mb4)")
            literals.append(literal.replace("'", "''"))
    return tuple(values), literals


def comparisons(literals: list[str]) -> Iterator[str]:
    for literal in dict.fromkeys(literals):
        yield from (f"v = '{literal}'", f"v LIKE '{literal}'", f"v LIKE '{literal}%'")


def _pieces(folds: list[tuple[str, str]], chosen: random.Random) -> Iterator[tuple[str, str]]:
    """A character, and the plain text that it may be equal to."""
    for _ in range(chosen.randint(0, 3)):
        kind = chosen.random()
        if kind < 0.6:
            plain, codes = chosen.choice(folds)
            yield chr(int(chosen.choice(codes.replace("-", " ").split()), 16)), plain
        elif kind < 0.8:
            plain = chr(chosen.randint(0x20, 0x7E))
            yield plain.swapcase(), plain
        elif kind < 0.9:
            plain = chr(chosen.randint(0x4E00, 0x9FA5))
            yield plain, plain
        else:
            yield chr(chosen.choice((chosen.randint(0x80, 0xD7FF), chosen.randint(0xE000, 0x1FFFF)))), ""
