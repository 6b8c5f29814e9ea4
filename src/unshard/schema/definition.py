"""A table's definition as a value: its columns, keys, constraints and options.

After `schema.implied` has filled it in, nothing is left for a server to decide. `schema.statements` reads definitions
from SQL text, `schema.implied` fills in what a statement leaves to the server, `schema.alter` applies the operations of
an ALTER TABLE, and `schema.text` writes SHOW CREATE TABLE.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import StrEnum

from unshard.model.table import quote_name

TEXT_TYPES = frozenset({"char", "varchar", "tinytext", "text", "mediumtext", "longtext", "enum", "set"})
"""Types whose values have a character set."""

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
    """Return the most bytes that one character takes in a character set; 1 if the set is unknown or None."""
    return _BYTES_A_CHARACTER.get(charset or "", 1)


class Dialect(StrEnum):
    """The product whose SHOW CREATE TABLE a text follows.

    MYSQL_5 shows the display width of integers; MYSQL does not.
    """

    MARIADB = "mariadb"
    MYSQL_5 = "mysql 5"
    MYSQL = "mysql"
    TIDB = "tidb"

    @property
    def shows_widths(self) -> bool:
        """True if SHOW CREATE TABLE shows the display widths of integers."""
        return self is not Dialect.MYSQL

    @property
    def of_mysql(self) -> bool:
        """True if the server is MySQL."""
        return self in (Dialect.MYSQL_5, Dialect.MYSQL)


@dataclass(frozen=True, slots=True)
class DataType:
    """A column's type.

    `name` is the type's name in `information_schema`, `arguments` are the numbers in brackets after it, if the
    statement or the server gives any, and `members` are the texts of an ENUM or SET.
    """

    name: str
    arguments: tuple[int, ...] = ()
    members: tuple[str, ...] = ()
    unsigned: bool = False
    zerofill: bool = False

    @property
    def is_text(self) -> bool:
        """True if the values are text, and so have a character set."""
        return self.name in TEXT_TYPES


class DefaultKind(StrEnum):
    """The kinds of a column's DEFAULT."""

    CONSTANT = "constant"
    """A literal: a quoted text, a number, `b'1'`, `x'41'`, TRUE, FALSE."""
    NULL = "null"
    NOW = "now"
    """CURRENT_TIMESTAMP, with as many digits as the column has."""
    EXPRESSION = "expression"


@dataclass(frozen=True, slots=True)
class Default:
    """The value after DEFAULT. `text` is SQL: empty for CURRENT_TIMESTAMP, without outer brackets for an expression."""

    kind: DefaultKind
    text: str = ""


@dataclass(frozen=True, slots=True)
class ColumnDefinition:
    """One column.

    Args:
        charset, collation: None for a type without a character set, and until `schema.implied` has filled them in.
        nullable: None if the statement says neither NULL nor NOT NULL.
        default: None if there is none.
        renewed: whether the column has ON UPDATE CURRENT_TIMESTAMP.
        generated: the expression of a generated column, without its outer brackets; None for any other column.
        stored: whether a generated column is stored; otherwise it is virtual.
        comment: the literal after COMMENT.
        period: `start` or `end` for the two columns of a system-versioned table that hold a row version's period.
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

    @property
    def checks(self) -> tuple[str, ...]:
        """The CHECKs among `others`, without the one by which MariaDB tells its JSON from a LONGTEXT."""
        return tuple(other for other in self.others if is_check(other) and other != json_check(self.name))


def json_check(column: str) -> str:
    """Return the CHECK that a JSON column of MariaDB has."""
    return f"CHECK (json_valid({quote_name(column)}))"


def is_check(attribute: str) -> bool:
    """Return whether an attribute of a column (`ColumnDefinition.others`) is a CHECK."""
    return "CHECK" in attribute.upper().split("(")[0].split()


class KeyKind(StrEnum):
    """The kinds of a key, each with the words that SHOW CREATE TABLE begins its line with."""

    PRIMARY = "PRIMARY KEY"
    UNIQUE = "UNIQUE KEY"
    PLAIN = "KEY"
    FULLTEXT = "FULLTEXT KEY"
    SPATIAL = "SPATIAL KEY"
    VECTOR = "VECTOR KEY"

    @property
    def unique(self) -> bool:
        """True if it is a primary or unique key."""
        return self in (KeyKind.PRIMARY, KeyKind.UNIQUE)


@dataclass(frozen=True, slots=True)
class KeyPart:
    """One part of a key: a column with its prefix length (0 for the whole value), or an expression without brackets."""

    column: str = ""
    prefix: int = 0
    descending: bool = False
    expression: str = ""


@dataclass(frozen=True, slots=True)
class KeyDefinition:
    """A key.

    `name` is PRIMARY for the primary key, and empty if the statement leaves the name to the server. `options` follow
    the columns, as they were written (`USING HASH`, `COMMENT 'x'`). `generated` marks a key that was made for a foreign
    key; it is removed once another key serves that foreign key.
    """

    kind: KeyKind
    name: str
    parts: tuple[KeyPart, ...]
    options: tuple[str, ...] = ()
    generated: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """The key's columns in lower case; an expression is an empty string."""
        return tuple(part.column.lower() for part in self.parts)

    @property
    def invisible(self) -> bool:
        """True if the optimizer ignores the key: MySQL's INVISIBLE, MariaDB's IGNORED."""
        return not {"INVISIBLE", "IGNORED"}.isdisjoint(option.upper() for option in self.options)


@dataclass(frozen=True, slots=True)
class ForeignKey:
    """A foreign key. `name` is empty if the statement leaves it to the server.

    `index` is the name that the statement gives to the key over the columns. `reference` is the text from REFERENCES
    on, as it was written.
    """

    name: str
    columns: tuple[str, ...]
    reference: str
    index: str = ""


@dataclass(frozen=True, slots=True)
class Check:
    """A CHECK constraint of the table. `rest` is the text after the expression's brackets (`NOT ENFORCED`)."""

    name: str
    expression: str
    rest: str = ""


@dataclass(frozen=True, slots=True)
class TableDefinition:
    """A table.

    Args:
        charset, collation: the table's defaults for new columns; empty until `schema.implied` has filled them in.
        options: table options by their names in capitals, with the values as they were written; without the character
            set and the AUTO_INCREMENT counter.
        counter: the AUTO_INCREMENT value that a CREATE TABLE gives.
        partitions: the text from PARTITION BY to the end, as it was written; empty without partitions.
        period: MariaDB's application-time period, `PERIOD FOR name (a, b)`, as it was written.
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
        """Return the column of that name, compared without regard to case; None if there is none."""
        return next((column for column in self.columns if column.name.lower() == name.lower()), None)

    def key(self, name: str) -> KeyDefinition | None:
        """Return the key of that name, compared without regard to case; None if there is none."""
        return next((key for key in self.keys if key.name.lower() == name.lower()), None)

    def option(self, name: str) -> str:
        """Return the value of an option; empty if the table has no such option."""
        return dict(self.options).get(name, "")

    def with_options(self, given: dict[str, str]) -> TableDefinition:
        """Return the table with these options added or replaced; an option with an empty value is removed."""
        merged = {**dict(self.options), **given}
        return replace(self, options=tuple((name, value) for name, value in merged.items() if value))

    @property
    def versioned(self) -> bool:
        """True if the table is system-versioned: MariaDB keeps earlier versions of its rows."""
        return bool(self.option("WITH SYSTEM VERSIONING"))
