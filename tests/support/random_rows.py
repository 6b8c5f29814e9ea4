"""Random tables and random changes of their rows, by seed: keys of all kinds, and few values, so that they meet.

The server refuses many of the statements, as duplicates or as out of range: that is its say.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

TEXTS = (
    *(
        "''",
        "'a'",
        "'A'",
        "'a '",
        "'á'",
        "'b'",
        "'ab'",
        "'aB  '",
        "'ß'",
        "'ss'",
        "'i'",
        "'\u0130'",
        "'\u0131'",
        "'j'",
        "' '",
    ),
    *("'\\\\'", "'it''s'", "'u'", "'w'", "'vv'", "'cs'", "'ccs'", "'ae'", "'æ'", "'漢'", "'😀'", "'\\0'", "'%_'"),
)
COLLATIONS = (
    *("utf8mb4_general_ci", "utf8mb4_unicode_ci", "utf8mb4_unicode_520_ci", "utf8mb4_bin", "latin1_swedish_ci"),
    *("latin1_german2_ci", "utf8mb4_hungarian_ci", "utf8mb4_turkish_ci", "ascii_general_ci", "ucs2_general_ci"),
    *("cp932_japanese_ci", "gbk_chinese_ci", "utf16_bin", "latin1_bin", "latin2_general_ci", "koi8r_general_ci"),
)
NUMBERS = tuple(str(number) for number in range(8))
LONG = ("REPEAT('x', 180)", "CONCAT(REPEAT('x', 180), 'Y')", "CONCAT(REPEAT('x', 180), 'y')", "REPEAT('é', 120)", "''")
DOUBLES = ("0", "-0.0", "0.1", "0.2", "1e300", "-1.5", "0.1e0 + 0.2e0", "5e-324", "123456.789", "9007199254740993")


@dataclass(frozen=True, slots=True)
class Kind:
    """A column's type, the literals that it is given, and a type of the target that keeps all of its values.

    `prefix` is what a key takes of it: "" for all of the value.
    """

    definition: str
    values: tuple[str, ...]
    wider: str = ""
    prefix: str = ""


KINDS = (
    Kind("INT", NUMBERS, "BIGINT"),
    Kind("INT", NUMBERS, "BIGINT"),
    Kind("TINYINT UNSIGNED ZEROFILL", (*NUMBERS, "255")),
    Kind("BIGINT UNSIGNED", ("0", "1", "9223372036854775808", "18446744073709551615")),
    Kind("BIGINT", ("0", "-1", "-9223372036854775808", "9223372036854775807")),
    Kind("DECIMAL(12,3)", ("0", "1", "-1.5", "1.500", "999999999.999", "-0.001")),
    Kind("FLOAT", ("0", "-0.0", "0.1", "0.2", "1e10", "16777217", "-1.5", "3.4e38", "1e-45", "123456.789")),
    Kind("DOUBLE", DOUBLES),
    Kind("DATE", ("'2020-02-29'", "'0000-00-00'", "'2020-02-31'", "'2020-00-00'", "'1000-01-01'")),
    Kind("DATETIME", ("'2020-02-29 01:02:03'", "'0000-00-00'", "'9999-12-31 23:59:59'"), "DATETIME(6)"),
    Kind("DATETIME(4)", ("'2020-02-29 01:02:03.4567'", "'2020-02-29 01:02:03.4'", "'0000-00-00'"), "DATETIME(6)"),
    Kind("TIMESTAMP(2) NULL", ("'2020-02-29 01:02:03.45'", "'2020-02-29 01:02:03'", "0"), "TIMESTAMP(5) NULL"),
    Kind("TIME(1)", ("'-838:59:59.0'", "'-00:00:00.1'", "'00:00:00'", "'12:00:00.5'", "'838:59:58.9'"), "TIME(3)"),
    Kind("YEAR", ("0", "1901", "2155", "2020")),
    Kind("BINARY(3)", ("x''", "x'61'", "x'6100'", "x'612000'", "x'ff'", "x'27'"), "VARBINARY(8)"),
    Kind("VARBINARY(8)", ("x''", "x'61'", "x'6100'", "x'6120'", "x'ff'", "x'00'"), "VARBINARY(20)"),
    Kind("BLOB", ("x''", "x'616263'", "x'61626364'", "x'ff'", "x'616200'"), "LONGBLOB", prefix="(3)"),
    Kind("VARCHAR(200)", LONG, "VARCHAR(240)"),
    Kind("ENUM('a','B','')", ("1", "2", "3", "'b'", "''")),
    Kind("ENUM('n','o')", ("1", "2", "'n'", "0", "''", "'x'")),
    Kind("SET('a','b','C')", ("0", "1", "5", "'c,a'", "7")),
    Kind("BIT(9)", ("b'0'", "b'1'", "b'111111111'", "b'100000000'"), "BIT(11)"),
)


_FRACTION = re.compile(r"^(?:TIME|DATETIME|TIMESTAMP)\((\d)\)")


@dataclass(frozen=True, slots=True)
class RandomTable:
    """The columns of a table, by name, and its keys; the last column `v` counts its changes."""

    name: str
    columns: dict[str, Kind]
    keys: tuple[str, ...]
    not_null: frozenset[str]

    def create(self, schema: str) -> str:
        parts = [
            f"{name} {kind.definition.removesuffix(' NULL')}{' NOT NULL' if name in self.not_null else ' NULL'}"
            for name, kind in self.columns.items()
        ]
        return f"CREATE TABLE {schema}.{self.name} ({', '.join([*parts, 'v INT', *self.keys])})"

    def wider(self, chosen: random.Random) -> RandomTable:
        """As the target may have it: columns of types that take more, perhaps fewer keys."""
        columns = {
            name: replace(kind, definition=kind.wider) if kind.wider and chosen.random() < 0.3 else kind
            for name, kind in self.columns.items()
        }
        return replace(self, columns=columns, keys=self.keys if chosen.random() < 0.5 else self.keys[:1])

    def shows(self, row: dict[str, str | None]) -> dict[str, str | None]:
        """Texts of a source's row as this table of the target shows them: with all of its fraction's digits."""
        digits = {name: _FRACTION.search(kind.definition) for name, kind in self.columns.items()}
        wanted = {name: int(found[1]) for name, found in digits.items() if found}
        return {name: _padded(text, wanted[name]) if name in wanted else text for name, text in row.items()}


def random_table(chosen: random.Random, name: str, collations: Sequence[str] = COLLATIONS) -> RandomTable:
    """A table of up to five columns of any kinds, now and then a hundred, with up to four unique keys or none."""
    count = 100 if chosen.random() < 0.04 else chosen.randint(1, 5)
    columns = {f"c{number}": _kind(chosen, collations) for number in range(count)}
    names = list(columns)[:5]
    keys = []
    not_null: set[str] = set()
    for number in range(chosen.choice((0, 1, 1, 2, 2, 3, 4))):
        parts = chosen.sample(names, min(len(names), chosen.choice((1, 1, 1, 2, 3))))
        listed = ", ".join(part + _prefix(chosen, columns[part]) for part in parts)
        if number == 0 and chosen.random() < 0.8:
            keys.append(f"PRIMARY KEY ({listed})")
            not_null.update(parts)
        else:
            keys.append(f"UNIQUE KEY u{number} ({listed})")
            not_null.update(part for part in parts if chosen.random() < 0.3)
    return RandomTable(name, columns, tuple(keys), frozenset(not_null))


def _padded(text: str | None, digits: int) -> str | None:
    if text is None:
        return None
    whole, _, fraction = text.partition(".")
    return f"{whole}.{fraction.ljust(digits, '0')}"


def _kind(chosen: random.Random, collations: Sequence[str]) -> Kind:
    if chosen.random() < 0.6:
        return chosen.choice(KINDS)
    collation = chosen.choice(collations)
    cast = f" CHARACTER SET {collation.split('_')[0]} COLLATE {collation}"
    kind, wider, prefix = chosen.choice(
        (
            ("VARCHAR(12)", "VARCHAR(40)", ""),
            ("CHAR(6)", "VARCHAR(10)", ""),
            ("TEXT", "MEDIUMTEXT", "(2)"),
            ("VARCHAR(9)", "VARCHAR(9)", "(1)"),
        )
    )
    return Kind(kind + cast, TEXTS, wider + cast, prefix)


def _prefix(chosen: random.Random, kind: Kind) -> str:
    whole = kind.definition.startswith(("VARCHAR", "CHAR")) and chosen.random() < 0.5
    return "" if whole else kind.prefix


def random_statements(chosen: random.Random, tables: Sequence[RandomTable], schema: str, count: int) -> Iterator[str]:
    """That many statements, some in transactions that are committed or rolled back."""
    open_for = 0
    for number in range(count):
        if not open_for and chosen.random() < 0.2:
            open_for = chosen.randint(2, 9)
            yield "BEGIN"
        table = chosen.choice(tables)
        yield (
            _insert(chosen, table, schema, number) if chosen.random() < 0.45 else _change(chosen, table, schema, number)
        )
        if open_for:
            open_for -= 1
            if not open_for:
                yield "ROLLBACK" if chosen.random() < 0.1 else "COMMIT"
    yield "COMMIT"


def _insert(chosen: random.Random, table: RandomTable, schema: str, number: int) -> str:
    rows = ", ".join(
        f"({', '.join(_value(chosen, table, name) for name in table.columns)}, {number})"
        for _ in range(chosen.choice((1, 1, 2, 5)))
    )
    verb = chosen.choice(("INSERT", "INSERT", "INSERT IGNORE", "REPLACE"))
    upsert = ""
    if verb == "INSERT" and chosen.random() < 0.2:
        column = chosen.choice(list(table.columns))
        upsert = f" ON DUPLICATE KEY UPDATE v = {number}, {column} = {_value(chosen, table, column)}"
    return f"{verb} INTO {schema}.{table.name} VALUES {rows}{upsert}"


def _change(chosen: random.Random, table: RandomTable, schema: str, number: int) -> str:
    names = list(table.columns)
    name = f"{schema}.{table.name}"
    column = chosen.choice(names)
    where = f"{column} <=> {_value(chosen, table, column)}" if chosen.random() < 0.7 else "RAND(7) < 0.5"
    if chosen.random() < 0.25:
        return f"DELETE FROM {name} WHERE {where}" + (" LIMIT 1" if chosen.random() < 0.4 else "")
    set_to = ", ".join(
        f"{one} = {_value(chosen, table, one)}" for one in chosen.sample(names, min(len(names), chosen.randint(0, 2)))
    )
    limit = " LIMIT 1" if chosen.random() < 0.5 else ""
    return f"UPDATE {name} SET v = {number}{', ' if set_to else ''}{set_to} WHERE {where}{limit}"


def _value(chosen: random.Random, table: RandomTable, name: str) -> str:
    if name not in table.not_null and chosen.random() < 0.15:
        return "NULL"
    return chosen.choice(table.columns[name].values)
