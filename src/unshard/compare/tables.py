"""Values that pair a target table, its key and columns with the source tables whose rows it should hold."""

from __future__ import annotations

from dataclasses import dataclass, replace

from unshard.compare.executor.canonical import ValueForm
from unshard.model.table import Column, Index, Table, TableName
from unshard.mysql.connection import Endpoint
from unshard.transform.column_mapping import ColumnMapping
from unshard.transform.extract import Constant
from unshard.transform.row_filter import RowFilter


@dataclass(frozen=True, slots=True)
class ComparedColumn:
    """A compared column of the target.

    `server_side`: all servers print its values alike, so they may compute checksums. `generated`: each end computes it.
    """

    name: str
    form: ValueForm
    server_side: bool
    generated: bool = False


@dataclass(frozen=True, slots=True)
class ComparedShard:
    """One source table to compare. `read` has the columns that are read, `table` all of them.

    `where` is the SQL condition that limited the copy of the source. `rules` names the task's rules that shape the
    table's rows.
    """

    source: str
    endpoint: Endpoint
    table: Table
    read: Table
    mapping: ColumnMapping | None = None
    constants: tuple[Constant, ...] = ()
    where: str = ""
    filters: tuple[RowFilter, ...] = ()
    rules: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Source and table, for messages."""
        return f"{self.source}: {self.table.name}"


@dataclass(frozen=True, slots=True)
class ComparedTable:
    """One target table with all source tables that are merged into it.

    `key` are the columns that identify a row; without any, rows are compared as a multiset. `range_key` are the leading
    columns of the key whose order cuts both sides into the same ranges. `condition` is a filter on both sides
    (`--where`). `generated` are columns that every end computes: they are compared by `with_generated`, and never
    written. `own` are columns that only the target has, and that it does not compute. `transactional`: the
    target's engine has transactions. `kept_by` is a rule by which the target may keep rows that a statement, such as
    TRUNCATE, has taken from the sources; "" for none.
    """

    name: TableName
    endpoint: Endpoint
    read: Table
    tidb: bool
    columns: tuple[ComparedColumn, ...]
    key: tuple[str, ...]
    range_key: tuple[str, ...]
    shards: tuple[ComparedShard, ...]
    condition: str = ""
    rows_estimate: int = 0
    generated: tuple[ComparedColumn, ...] = ()
    own: tuple[Column, ...] = ()
    transactional: bool = True
    kept_by: str = ""

    @property
    def further_keys(self) -> tuple[Index, ...]:
        """The unique keys, beside that of the rows, in which two rows of the target could hold each other's values.

        Those over a column that is not compared are not among them, as its values are not known.
        """
        known = {column.name.lower() for column in (*self.columns, *self.generated)}
        key = {name.lower() for name in self.key}
        columns = ((index, {name.lower() for name in index.columns}) for index in self.read.unique_keys)
        return tuple(index for index, names in columns if names <= known and not key <= names) if key else ()

    @property
    def rest(self) -> tuple[str, ...]:
        """The columns outside of the key; those that are written, of a table without a key."""
        key = frozenset(self.key)
        return tuple(c.name for c in self.columns if (c.name not in key if key else not c.generated))

    def with_generated(self) -> ComparedTable:
        """Return the table with the generated columns among the compared ones."""
        return replace(self, columns=(*self.columns, *self.generated), generated=())

    @property
    def server_side(self) -> bool:
        """True if both ends can compute checksums of their rows in the same form."""
        plain = all(shard.mapping is None and not shard.constants for shard in self.shards)
        return plain and all(column.server_side for column in self.columns)
