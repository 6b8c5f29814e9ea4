"""Tables as the tracker and the target know them: columns, keys, identity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True, order=True)
class TableName:
    """The name of a table with its schema, as the server spells both. Ordered by schema, then table."""

    schema: str
    table: str

    def __str__(self) -> str:
        return f"{self.schema}.{self.table}"

    @property
    def quoted(self) -> str:
        """`schema`.`table` for use in SQL."""
        return f"{quote_name(self.schema)}.{quote_name(self.table)}"


def name_form(name: TableName) -> list[str]:
    """Return a table's name in its JSON form: schema and table."""
    return [name.schema, name.table]


def name_of(form: Sequence[str]) -> TableName:
    """Return the name that `name_form` wrote."""
    schema, table = form
    return TableName(schema, table)


def quote_name(name: str) -> str:
    """Return an identifier in backticks, safe for any name."""
    return "`" + name.replace("`", "``") + "`"


def quote_text(text: str) -> str:
    """Return a text as a literal in single quotes, for sessions in which a backslash escapes."""
    return "'" + text.replace("\\", "\\\\").replace("'", "''") + "'"


@dataclass(frozen=True, slots=True)
class Column:
    """One column, with the values of `information_schema.columns`.

    Args:
        type: DATA_TYPE in lower case (`bigint`, `varchar`, `enum`).
        definition: COLUMN_TYPE (`bigint(20) unsigned`).
        charset, collation: None for types that have none.
        length: in characters for text, in bytes for binary types.
        fsp: the digits of fractional seconds.
        members: the texts of an ENUM or SET in order.
        period: `start` or `end` for the two columns of a system-versioned table that hold a row version's period.
    """

    name: str
    type: str
    definition: str
    nullable: bool = True
    charset: str | None = None
    collation: str | None = None
    length: int = 0
    precision: int = 0
    scale: int = 0
    fsp: int = 0
    members: tuple[str, ...] = ()
    generated: bool = False
    auto_increment: bool = False
    invisible: bool = False
    has_default: bool = True
    period: str = ""

    @property
    def unsigned(self) -> bool:
        """True if it is a number without a sign; ZEROFILL implies UNSIGNED."""
        return "unsigned" in self.definition or "zerofill" in self.definition

    @property
    def compressed(self) -> bool:
        """True if MariaDB compresses each value (`VARCHAR(9) COMPRESSED`), in its tables and its binlog alike."""
        return not self.members and "COMPRESSED" in self.definition

    @property
    def text_with_collation(self) -> bool:
        """True if two different byte strings may be equal in this column."""
        return self.collation is not None and self.collation != "binary"

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form, which `from_dict` reads."""
        return {
            "name": self.name,
            "type": self.type,
            "definition": self.definition,
            "nullable": self.nullable,
            "charset": self.charset,
            "collation": self.collation,
            "length": self.length,
            "precision": self.precision,
            "scale": self.scale,
            "fsp": self.fsp,
            "members": self.members,
            "generated": self.generated,
            "auto_increment": self.auto_increment,
            "invisible": self.invisible,
            "has_default": self.has_default,
            "period": self.period,
        }

    @classmethod
    def from_dict(cls, form: Mapping[str, Any]) -> Column:
        """Read the JSON form.

        A field that an earlier version did not write gets the value that every column had then.
        """
        return cls(
            form["name"],
            form["type"],
            form["definition"],
            form["nullable"],
            form["charset"],
            form["collation"],
            form["length"],
            form["precision"],
            form["scale"],
            form["fsp"],
            tuple(form["members"]),
            form["generated"],
            form["auto_increment"],
            form["invisible"],
            form.get("has_default", True),
            form.get("period", ""),
        )


@dataclass(frozen=True, slots=True)
class Index:
    """A key of a table.

    `prefixes` has, for each column, the length of the indexed prefix, or 0 for the whole value.
    """

    name: str
    columns: tuple[str, ...]
    prefixes: tuple[int, ...]
    unique: bool

    @property
    def primary(self) -> bool:
        """True if it is the primary key."""
        return self.name == "PRIMARY"

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form, which `from_dict` reads."""
        return {"name": self.name, "columns": self.columns, "prefixes": self.prefixes, "unique": self.unique}

    @classmethod
    def from_dict(cls, form: Mapping[str, Any]) -> Index:
        """Read the form of `to_dict`."""
        return cls(form["name"], tuple(form["columns"]), tuple(form["prefixes"]), form["unique"])


@dataclass(frozen=True, slots=True)
class Table:
    """A table's structure at one point of the binlog.

    `columns` are in the table's order, with generated, invisible and hidden ones, as row events have them. `create_sql`
    is the server's SHOW CREATE TABLE without the AUTO_INCREMENT counter. `foreign_keys`: whether the table has any.
    """

    name: TableName
    columns: tuple[Column, ...]
    indexes: tuple[Index, ...] = ()
    create_sql: str = ""
    foreign_keys: bool = False

    @classmethod
    def absent(cls, name: TableName) -> Table:
        """Return the value for a name under which a snapshot has no table."""
        return cls(name, ())

    @property
    def is_absent(self) -> bool:
        """True if there is no table.

        Only `absent` makes a table without columns; a value for a schema has no table name.
        """
        return bool(self.name.table) and not self.columns

    @property
    def identity(self) -> tuple[str, ...]:
        """The columns that identify a row: the primary key, else a NOT NULL unique key, else none."""
        nullable = {column.name for column in self.columns if column.nullable}
        names = {column.name for column in self.columns}  # a key over an expression has a part without a name
        whole = [index for index in self.unique_keys if not any(index.prefixes)]
        unique = [index for index in whole if names.issuperset(index.columns)]
        for index in sorted(unique, key=lambda index: (not index.primary, index.name)):
            if not nullable.intersection(index.columns):
                return index.columns
        return ()

    @property
    def row_end(self) -> int | None:
        """The index of the column with the end of a row version's period; None without system versioning."""
        return next((number for number, column in enumerate(self.columns) if column.period == "end"), None)

    @property
    def unique_keys(self) -> tuple[Index, ...]:
        """Primary and unique keys, in the order of `indexes`."""
        return tuple(index for index in self.indexes if index.unique)

    def column(self, name: str) -> Column:
        """Return the column of that name. Raises KeyError."""
        for column in self.columns:
            if column.name.lower() == name.lower():
                return column
        raise KeyError(name)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form, which `from_dict` reads.

        Checkpoints store it as `table_info`, and dumps store it for each table.
        """
        return {
            "name": {"schema": self.name.schema, "table": self.name.table},
            "columns": [column.to_dict() for column in self.columns],
            "indexes": [index.to_dict() for index in self.indexes],
            "create_sql": self.create_sql,
            "foreign_keys": self.foreign_keys,
        }

    @classmethod
    def from_dict(cls, form: Mapping[str, Any]) -> Table:
        """Read the form of `to_dict`."""
        return cls(
            name=TableName(form["name"]["schema"], form["name"]["table"]),
            columns=tuple(map(Column.from_dict, form["columns"])),
            indexes=tuple(map(Index.from_dict, form["indexes"])),
            create_sql=form["create_sql"],
            foreign_keys=form["foreign_keys"],
        )
