"""Tables as the tracker and the target know them: columns, keys, identity."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True, slots=True, order=True)
class TableName:
    schema: str
    table: str

    def __str__(self) -> str:
        return f"{self.schema}.{self.table}"

    @property
    def quoted(self) -> str:
        """`schema`.`table` for use in SQL."""
        return f"{quote_name(self.schema)}.{quote_name(self.table)}"


def quote_name(name: str) -> str:
    """An identifier in backticks, safe for any name."""
    return "`" + name.replace("`", "``") + "`"


@dataclass(frozen=True, slots=True)
class Column:
    """One column, as `information_schema.columns` tells it.

    `type` is DATA_TYPE in lower case (`bigint`, `varchar`, `enum`); `definition` is COLUMN_TYPE
    (`bigint(20) unsigned`). `charset` and `collation` are None for types that have none. `members` are the
    texts of an ENUM or SET in order. `length` is in characters for text and in bytes for binary types.
    `period` is `start` or `end` for the two columns of a system-versioned table that tell when a row was there.
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
        return "unsigned" in self.definition or "zerofill" in self.definition

    @property
    def compressed(self) -> bool:
        """Whether MariaDB packs each value (`VARCHAR(9) COMPRESSED`), in its tables and its binlog alike."""
        return not self.members and "COMPRESSED" in self.definition

    @property
    def text_with_collation(self) -> bool:
        """Whether two different byte strings may be equal in this column."""
        return self.collation is not None and self.collation != "binary"


@dataclass(frozen=True, slots=True)
class Index:
    """A key of a table. `prefixes` holds, by column, the indexed prefix length or 0 for the whole value."""

    name: str
    columns: tuple[str, ...]
    prefixes: tuple[int, ...]
    unique: bool

    @property
    def primary(self) -> bool:
        return self.name == "PRIMARY"


@dataclass(frozen=True, slots=True)
class Table:
    """A table's structure at one point of the log.

    `columns` are in the table's own order, generated, invisible and hidden ones included, as row events have them.
    `create_sql` is the server's SHOW CREATE TABLE with the AUTO_INCREMENT counter taken out.
    """

    name: TableName
    columns: tuple[Column, ...]
    indexes: tuple[Index, ...] = ()
    create_sql: str = ""
    foreign_keys: bool = False

    @classmethod
    def absent(cls, name: TableName) -> Table:
        """What a snapshot holds under a name that no table had when it was taken."""
        return cls(name, ())

    @property
    def is_absent(self) -> bool:
        """Whether there is no table: only `absent` makes one without columns, and the row of a schema has no name."""
        return bool(self.name.table) and not self.columns

    @property
    def identity(self) -> tuple[str, ...]:
        """The columns that name a row: primary key, else a NOT NULL unique key, else none."""
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
        """The number of the column that tells when a row's time ended; None for a table without system versioning."""
        return next((number for number, column in enumerate(self.columns) if column.period == "end"), None)

    @property
    def unique_keys(self) -> tuple[Index, ...]:
        return tuple(index for index in self.indexes if index.unique)

    def column(self, name: str) -> Column:
        """The column of that name. Raises KeyError."""
        for column in self.columns:
            if column.name.lower() == name.lower():
                return column
        raise KeyError(name)

    def to_dict(self) -> dict[str, Any]:
        """JSON-ready form, read back by `from_dict`; what checkpoints keep as `table_info`."""
        return asdict(self)

    @classmethod
    def from_dict(cls, form: dict[str, Any]) -> Table:
        return cls(
            name=TableName(**form["name"]),
            columns=tuple(Column(**{**column, "members": tuple(column["members"])}) for column in form["columns"]),
            indexes=tuple(
                Index(index["name"], tuple(index["columns"]), tuple(index["prefixes"]), index["unique"])
                for index in form["indexes"]
            ),
            create_sql=form["create_sql"],
            foreign_keys=form["foreign_keys"],
        )
