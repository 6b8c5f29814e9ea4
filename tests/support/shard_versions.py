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
    "VARCHAR(20) CHARACTER SET latin1": ("''", "'a'", "'A '", "'b  '"),
    "CHAR(9) COLLATE utf8mb4_unicode_ci": ("''", "'a'", "'A'", "'ß'"),
    "VARBINARY(20)": ("''", "'a'", "'b  '"),
}
WIDER = {
    "VARCHAR(20) CHARACTER SET latin1": "VARCHAR(300)",
    "CHAR(9) COLLATE utf8mb4_unicode_ci": "VARCHAR(20)",
    "INT": "BIGINT",
    "VARCHAR(20)": "VARCHAR(300)",
    "ENUM('a','b')": "ENUM('a','b','c')",
}


@dataclass(frozen=True)
class Identity:
    """The column `id`, and the key that it is. `text`: its values are written in quotes."""

    kind: str = "BIGINT"
    key: str = "PRIMARY KEY (id)"

    @property
    def text(self) -> bool:
        return self.kind.startswith("VAR")

    @property
    def shows_history(self) -> bool:
        """Whether TiDB tells which transactions wrote a row."""
        return "INT" in self.kind and self.key.startswith("PRIMARY")

    def literal(self, number: int) -> str:
        return f"'{number}'" if self.text else str(number)


IDENTITIES = (
    Identity(),
    Identity(),
    Identity("BIGINT UNSIGNED"),
    Identity("DECIMAL(20)"),
    Identity("VARCHAR(24) COLLATE utf8mb4_unicode_ci"),
    Identity("VARCHAR(24) CHARACTER SET latin1"),
    Identity("VARBINARY(24)"),
    Identity(key="UNIQUE KEY own (id)"),
)
"""Of which each target table has one; where `partition id` makes the values, the first."""


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

    identity: Identity = Identity()
    columns: tuple[Column, ...] = ()
    keys: tuple[tuple[str, str], ...] = ()
    change: str = ""

    def create(self, name: str) -> str:
        own = self.identity
        parts = [f"id {own.kind} NOT NULL", "v INT NOT NULL", *(column.definition for column in self.columns), own.key]
        parts += [f"{'UNIQUE ' * (key[0] == 'u')}KEY {key} (id, {column})" for key, column in self.keys]
        return f"CREATE TABLE {name} ({', '.join(parts)})"

    @property
    def body(self) -> tuple[object, ...]:
        return self.columns, self.keys
