"""Kinds of test tables: the CREATE TABLE, and a function that makes a row's values from a seeded random generator."""

from __future__ import annotations

import string
from collections.abc import Callable
from dataclasses import dataclass, replace
from random import Random
from typing import Any

Values = tuple[Any, ...]

_LETTERS = string.ascii_letters + string.digits + " '\"\\%_\n\té漢😀"
_MEMBERS = ("new", "paid", "sent", "it's")


@dataclass(frozen=True, slots=True)
class TableShape:
    """A kind of test table: its definition, and how the values of its rows are made.

    `columns` are the columns in which a row is written, the key column `id` first if `keyed`; `values` makes the values
    of the others. `changeable` are the columns that an UPDATE may set. `scarce` shapes have unique keys besides `id`
    whose values come from a small range, so that statements meet duplicates, as in production.
    """

    name: str
    definition: str
    columns: tuple[str, ...]
    changeable: tuple[str, ...]
    values: Callable[[Random], Values]
    keyed: bool = True
    scarce: bool = False

    def without_documents(self) -> TableShape:
        """Return the shape without its column of JSON, a type that MySQL before 5.7 does not have."""
        if "document" not in self.columns:
            return self
        return replace(
            self,
            definition=self.definition.replace(", document JSON", ""),
            columns=self.columns[:-1],
            changeable=self.changeable[:-1],
            values=lambda random: self.values(random)[:-1],
        )

    @property
    def lookup(self) -> str:
        """The column by which an UPDATE or DELETE finds its rows."""
        return "id" if self.keyed else "k"


def _text(random: Random, longest: int) -> str:
    return "".join(random.choices(_LETTERS, k=random.randint(0, longest)))


def _digits(random: Random, groups: int) -> str:
    return "-".join(f"{random.randrange(10**11):011d}" for _ in range(groups))


def _sysbench(random: Random) -> Values:
    return random.randint(1, 1000), _digits(random, 10), _digits(random, 5)


def _several_unique(random: Random) -> Values:
    code = None if random.random() < 0.2 else f"c{random.randrange(400)}"
    return random.randrange(400), code, _text(random, 12)


def _no_key(random: Random) -> Values:
    return random.randint(1, 40), random.choice((None, _text(random, 6)))


def _moment(random: Random, digits: int) -> str:
    day = f"{random.randint(1971, 2037)}-{random.randint(1, 12):02d}-{random.randint(1, 28):02d}"
    time = f"{random.randint(0, 23):02d}:{random.randint(0, 59):02d}:{random.randint(0, 59):02d}"
    return f"{day} {time}" + (f".{random.randrange(10**digits):0{digits}d}" if digits else "")


def _types(random: Random) -> Values:
    made: Values = (
        random.randint(-128, 127),
        random.randint(0, 65535),
        random.randint(-(2**23), 2**23 - 1),
        random.choice((0, 2**64 - 1, random.randrange(2**64))),
        random.uniform(-1e6, 1e6),
        random.choice((0.1, 1e300, -2.5e-300, random.uniform(-1, 1))),
        f"{random.randint(-(10**12), 10**12)}.{random.randrange(10**6):06d}",
        _moment(random, 0)[:10],
        f"{random.randint(-838, 838)}:{random.randint(0, 59):02d}:{random.randint(0, 58):02d}.250",
        _moment(random, 6),
        _moment(random, 3),
        random.randint(1901, 2155),
        _text(random, 20).strip(),
        _text(random, 60),
        _text(random, 400),
        "".join(random.choices(string.ascii_letters + "äöüß", k=random.randint(0, 30))),
        random.choice(_MEMBERS),
        ",".join(member for member in ("a", "b", "c") if random.random() < 0.5),
        random.randbytes(random.randint(0, 8)),
        random.randbytes(random.randint(0, 40)),
        random.randbytes(random.randint(0, 200)),
        random.randrange(2**11),
        f'{{"n": {random.randint(0, 99)}, "s": "é"}}',
    )
    return tuple(None if random.random() < 0.07 else value for value in made)


_TYPES_COLUMNS = (
    "tiny TINYINT",
    "small SMALLINT UNSIGNED",
    "medium MEDIUMINT",
    "big BIGINT UNSIGNED",
    "single_float FLOAT",
    "double_float DOUBLE",
    "exact DECIMAL(20,6)",
    "day DATE",
    "span TIME(3)",
    "moment DATETIME(6)",
    "stamp TIMESTAMP(3) NULL",
    "made YEAR",
    "fixed CHAR(20)",
    "varied VARCHAR(200)",
    "long_text TEXT",
    "western VARCHAR(40) CHARACTER SET latin1",
    "state ENUM('new','paid','sent','it''s')",
    "flags SET('a','b','c')",
    "fixed_bytes BINARY(8)",
    "varied_bytes VARBINARY(40)",
    "large_bytes BLOB",
    "bits BIT(11)",
    "document JSON",
)
_TYPES_NAMES = tuple(column.split()[0] for column in _TYPES_COLUMNS)

SYSBENCH = TableShape(
    "sysbench",
    "(id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, k INT NOT NULL DEFAULT 0, c CHAR(120) NOT NULL DEFAULT '',"
    " pad CHAR(60) NOT NULL DEFAULT '', KEY k_1 (k))",
    ("id", "k", "c", "pad"),
    ("k", "c", "pad"),
    _sysbench,
)
TYPES = TableShape(
    "types",
    f"(id BIGINT NOT NULL PRIMARY KEY, {', '.join(_TYPES_COLUMNS)})",
    ("id", *_TYPES_NAMES),
    _TYPES_NAMES,
    _types,
)
SEVERAL_UNIQUE = TableShape(
    "several_unique",
    "(id BIGINT NOT NULL PRIMARY KEY, n INT NOT NULL, code VARCHAR(20), note VARCHAR(40),"
    " UNIQUE KEY n_1 (n), UNIQUE KEY code_1 (code))",
    ("id", "n", "code", "note"),
    ("n", "code", "note"),
    _several_unique,
    scarce=True,
)
NO_KEY = TableShape("no_key", "(k INT NOT NULL, note VARCHAR(20))", ("k", "note"), ("note",), _no_key, keyed=False)

SHAPES: dict[str, TableShape] = {shape.name: shape for shape in (SYSBENCH, TYPES, SEVERAL_UNIQUE, NO_KEY)}
