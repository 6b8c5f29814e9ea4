"""Structures that random shards have one after the other."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

KINDS: Mapping[str, tuple[str, ...]] = {
    "INT": ("0", "1", "-7", "2147483647"),
    "BIGINT": ("0", "1", "-7", "2147483648"),
    "VARCHAR(20)": ("''", "'a'", "'b  '", "'ß'"),
    "VARCHAR(300)": ("''", "'a'", "'b  '", "REPEAT('x', 290)"),
    "DECIMAL(10,2)": ("0", "1.5", "-99.99"),
    "DATETIME(3)": ("'2020-02-29 01:02:03.456'", "'1000-01-01'"),
    "ENUM('a','b')": ("'a'", "'b'"),
    "ENUM('a','b','c')": ("'a'", "'b'", "'c'"),
}
WIDER = {"INT": "BIGINT", "VARCHAR(20)": "VARCHAR(300)", "ENUM('a','b')": "ENUM('a','b','c')"}


@dataclass(frozen=True)
class Column:
    """`rest` is what follows its type; a generated one has no `kind`."""

    name: str
    kind: str
    rest: str

    @property
    def definition(self) -> str:
        return f"{self.name} {self.kind} {self.rest}"


@dataclass(frozen=True)
class Version:
    """The structure of a target table, and the statement that led to it, with `{}` for the table."""

    columns: tuple[Column, ...] = ()
    keys: tuple[tuple[str, str], ...] = ()
    change: str = ""

    def create(self, name: str) -> str:
        parts = ["id BIGINT NOT NULL PRIMARY KEY", "v INT NOT NULL", *(column.definition for column in self.columns)]
        parts += [f"{'UNIQUE ' * (key[0] == 'u')}KEY {key} (id, {column})" for key, column in self.keys]
        return f"CREATE TABLE {name} ({', '.join(parts)})"

    @property
    def body(self) -> tuple[object, ...]:
        return self.columns, self.keys
