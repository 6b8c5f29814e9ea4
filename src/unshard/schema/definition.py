"""A table's definition as a value: its columns, keys, constraints and options, with nothing left to the server.

`schema.statements` reads definitions from SQL text, `schema.implied` fills in what a statement leaves to the server,
`schema.alter` applies the operations of an ALTER TABLE, and `schema.text` writes SHOW CREATE TABLE.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

TEXT_TYPES = frozenset({"char", "varchar", "tinytext", "text", "mediumtext", "longtext", "enum", "set"})
"""Types whose values are of a character set."""

INTEGER_TYPES = ("tinyint", "smallint", "mediumint", "int", "bigint")
GEOMETRY_TYPES = frozenset(
    {
        "geometry", "point", "linestring", "polygon", "multipoint", "multilinestring", "multipolygon",
        "geometrycollection", "geomcollection",
    }
)  # fmt: skip
BLOB_TYPES = ("tinyblob", "blob", "mediumblob", "longblob")
CLOB_TYPES = ("tinytext", "text", "mediumtext", "longtext")


_BYTES_A_CHARACTER = {
    "utf8mb4": 4, "utf16": 4, "utf16le": 4, "utf32": 4, "gb18030": 4, "utf8mb3": 3, "utf8": 3, "ujis": 3,
    "eucjpms": 3, "ucs2": 2, "gbk": 2, "gb2312": 2, "big5": 2, "cp932": 2, "sjis": 2, "euckr": 2,
}  # fmt: skip


def bytes_a_character(charset: str | None) -> int:
    """The most bytes that a character takes."""
    return _BYTES_A_CHARACTER.get(charset or "", 1)


class Dialect(StrEnum):
    """Whose SHOW CREATE TABLE a text is, or is to be. MYSQL_5 shows the display width of integers, MYSQL does not."""

    MARIADB = "mariadb"
    MYSQL_5 = "mysql 5"
    MYSQL = "mysql"
    TIDB = "tidb"

    @property
    def shows_widths(self) -> bool:
        return self is not Dialect.MYSQL

    @property
    def of_mysql(self) -> bool:
        return self in (Dialect.MYSQL_5, Dialect.MYSQL)


@dataclass(frozen=True, slots=True)
class DataType:
    """A column's type. `name` is what `information_schema` calls it, `arguments` are the numbers behind it, where the
    statement or the server gives some, and `members` are the texts of an ENUM or SET."""

    name: str
    arguments: tuple[int, ...] = ()
    members: tuple[str, ...] = ()
    unsigned: bool = False
    zerofill: bool = False

    @property
    def is_text(self) -> bool:
        return self.name in TEXT_TYPES


class DefaultKind(StrEnum):
    CONSTANT = "constant"
    """A literal: a quoted text, a number, `b'1'`, `x'41'`, TRUE, FALSE."""
    NULL = "null"
    NOW = "now"
    """CURRENT_TIMESTAMP, with as many digits as the column has."""
    EXPRESSION = "expression"


@dataclass(frozen=True, slots=True)
class Default:
    """What DEFAULT says. `text` is SQL; of CURRENT_TIMESTAMP it is empty, of an expression without its outer
    brackets."""

    kind: DefaultKind
    text: str = ""


@dataclass(frozen=True, slots=True)
class ColumnDefinition:
    """One column.

    Args:
        charset, collation: None for a type without a character set, and before `schema.implied` has filled them in.
        nullable: None where the statement says neither NULL nor NOT NULL.
        default: None where there is none.
        renewed: ON UPDATE CURRENT_TIMESTAMP.
        generated: the expression of a generated column, without its outer brackets.
        comment: the literal behind COMMENT.
        period: `start` or `end` for the two columns of a system-versioned table that tell when a row was there.
        others: further attributes as they were written (`COMPRESSED`, `CHECK (…)`, `SRID 4326`, `STORAGE DISK`).
    """

    name: str
    type: DataType
    charset: str | None = None
    collation: str | None = None
    nullable: bool | None = None
    default: Default | None = None
    renewed: bool = False
    auto_increment: bool = False
    generated: str | None = None
    stored: bool = False
    invisible: bool = False
    comment: str | None = None
    period: str = ""
    others: tuple[str, ...] = ()


class KeyKind(StrEnum):
    PRIMARY = "PRIMARY KEY"
    UNIQUE = "UNIQUE KEY"
    PLAIN = "KEY"
    FULLTEXT = "FULLTEXT KEY"
    SPATIAL = "SPATIAL KEY"
    VECTOR = "VECTOR KEY"

    @property
    def unique(self) -> bool:
        return self in (KeyKind.PRIMARY, KeyKind.UNIQUE)


@dataclass(frozen=True, slots=True)
class KeyPart:
    """A column of a key with the length of its prefix, 0 for the whole value, or an expression without its brackets."""

    column: str = ""
    prefix: int = 0
    descending: bool = False
    expression: str = ""


@dataclass(frozen=True, slots=True)
class KeyDefinition:
    """A key. `name` is PRIMARY for the primary key, and empty where the statement leaves it to the server. `options`
    stand behind the columns as they were written (`USING HASH`, `COMMENT 'x'`). `generated`: made for a foreign key,
    and given up where another key can do its work."""

    kind: KeyKind
    name: str
    parts: tuple[KeyPart, ...]
    options: tuple[str, ...] = ()
    generated: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """Its columns in lower case; an expression is an empty one."""
        return tuple(part.column.lower() for part in self.parts)

    @property
    def invisible(self) -> bool:
        """Whether the optimizer passes it over: MySQL's INVISIBLE, MariaDB's IGNORED."""
        return not {"INVISIBLE", "IGNORED"}.isdisjoint(option.upper() for option in self.options)


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """A foreign key. `name` is empty where the statement leaves it to the server; `index` is the name that the
    statement gives to the key over its columns; `reference` is everything from REFERENCES on, as it was written."""

    name: str
    columns: tuple[str, ...]
    reference: str
    index: str = ""


@dataclass(frozen=True, slots=True)
class Check:
    """A CHECK constraint of the table. `rest` is what stands behind the expression's brackets (`NOT ENFORCED`)."""

    name: str
    expression: str
    rest: str = ""


@dataclass(frozen=True, slots=True)
class TableDefinition:
    """A table.

    Args:
        charset, collation: its defaults for new columns; empty before `schema.implied` has filled them in.
        options: by their names in capitals, the values as they were written; without character set and counter.
        counter: AUTO_INCREMENT, as a CREATE TABLE gives it.
        partitions: from PARTITION BY to the end, as it was written; empty without partitions.
        period: MariaDB's period of an application, `PERIOD FOR name (a, b)`, as it was written.
    """

    columns: tuple[ColumnDefinition, ...]
    keys: tuple[KeyDefinition, ...] = ()
    foreign_keys: tuple[ForeignKey, ...] = ()
    checks: tuple[Check, ...] = ()
    charset: str = ""
    collation: str = ""
    options: tuple[tuple[str, str], ...] = ()
    partitions: str = ""
    period: str = ""
    counter: str = ""

    def column(self, name: str) -> ColumnDefinition | None:
        """The column of that name, in any case."""
        return next((column for column in self.columns if column.name.lower() == name.lower()), None)

    def key(self, name: str) -> KeyDefinition | None:
        """The key of that name, in any case."""
        return next((key for key in self.keys if key.name.lower() == name.lower()), None)

    def option(self, name: str) -> str:
        """The value of an option, empty where the table has none of that name."""
        return dict(self.options).get(name, "")

    def with_options(self, given: dict[str, str]) -> TableDefinition:
        """The table with these options in the place of those of the same names; an empty value takes one away."""
        merged = {**dict(self.options), **given}
        return replace(self, options=tuple((name, value) for name, value in merged.items() if value))

    @property
    def versioned(self) -> bool:
        """Whether MariaDB keeps earlier versions of its rows."""
        return bool(self.option("WITH SYSTEM VERSIONING"))
