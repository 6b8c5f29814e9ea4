"""Refuses statements that take the rows of a partition where the target's partition may have other rows.

| statement | refused |
|---|---|
| DROP, TRUNCATE, EXCHANGE PARTITION, CONVERT PARTITION … TO TABLE | where the partitions of both ends differ |
| TRUNCATE PARTITION ALL | never: it takes all rows |
| ADD, REORGANIZE, COALESCE, REBUILD PARTITION, PARTITION BY, REMOVE PARTITIONING | never: they take no rows |

The target's table may be made by hand, and TiDB makes other partitions of some definitions. Where the definitions are
equal, the rows of a partition are not in these cases:

* KEY and LINEAR: each product computes the number of the partition in its own way, and KEY by the bytes of a value.
* HASH on TiDB, unless it is of one NOT NULL column: where the expression is NULL, a row is in partition 0 there, on
  MySQL and MariaDB in that of the smallest BIGINT.
* The partition depends on a text, and the collations differ.
* The partition depends on a column whose type differs, or that a column mapping changes.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

from unshard.ddl.cursor import tokens_of
from unshard.ddl.pieces import AlterOperation, StatementRules
from unshard.ddl.session import neutral_session
from unshard.ddl.statement import Ddl, StatementKind
from unshard.errors import DdlError
from unshard.model.table import Column, Table, TableName
from unshard.mysql.structure import read_table
from unshard.mysql.tidb import is_tidb, new_collations
from unshard.mysql.tidb_collations import same_collation
from unshard.mysql.types import INTEGERS
from unshard.schema.partition_options import PartitionOptions, partition_options

_TAKING = frozenset({"DROP", "TRUNCATE", "EXCHANGE", "CONVERT"})


def takes_partition(ddl: Ddl) -> bool:
    """Return whether the statement takes the rows of some partitions out of its table."""
    if ddl.kind is not StatementKind.ALTER_TABLE or ddl.parts_at is None:
        return False
    own = [token for token in tokens_of(ddl.text, ddl.context) if token.start >= ddl.parts_at]
    words = [token.word for token in own]
    for at, word in enumerate(words[:-1]):
        begins = at == 0 or own[at - 1].is_symbol(",")
        if begins and word in _TAKING and words[at + 1] == "PARTITION":
            return [word, *words[at + 2 : at + 3]] != ["TRUNCATE", "ALL"]
    return False


def check_partitions(
    connection: Any,
    pieces: Sequence[AlterOperation],
    before: Callable[[TableName], Table | None],
    rules: StatementRules,
    waiting: Sequence[Table] = (),
) -> None:
    """Raise DdlError DDL-047 for an operation that may take other rows on the target than it took on the source.

    `before` returns the source's table before the statement; `waiting` is that table before each statement that the
    target does not have yet. An operator's statement passes. Raises MySQLdb.Error for a lost connection.
    """
    for piece in pieces:
        for ddl in () if piece.given else filter(takes_partition, piece.run):
            name = ddl.tables[0]
            befores = [*waiting, before(name)]
            refuse_other_rows(connection, ddl, rules.route(name), befores, rules.marks(name).columns)


def refuse_other_rows(
    connection: Any, ddl: Ddl, target: TableName, befores: Sequence[Table | None], mapped: Collection[str] = ()
) -> None:
    """Raise DdlError DDL-047 where the target's table has other partitions than every one of `befores`.

    `mapped`: the columns that a column mapping reads or writes. Does nothing where the target lacks the table.
    """
    with neutral_session(connection):
        there = read_table(connection, target)
    if there is None:
        return
    why = ""
    for before in befores:
        why = other_rows(connection, before, there, mapped, mariadb=ddl.context.mariadb)
        if not why:
            return
    where = replace(ddl.context.where, table=str(target))
    raise DdlError("DDL-047", where, why, {"table": str(target), "statement": ddl.text})


def other_rows(
    connection: Any, before: Table | None, there: Table, mapped: Collection[str] = (), *, mariadb: bool
) -> str:
    """Return why a partition of the source's table may have other rows than that of the target's; empty if not.

    `mariadb`: whether the source is a MariaDB. `connection` is to the target.
    """
    product = _product(connection)
    same_product = product == ("MariaDB" if mariadb else "MySQL")
    on_tidb = _OnTidb(new_collations(connection)) if product == "TiDB" else None
    return next(_differences(before, there, mapped, on_tidb, same_product=same_product), "")


def _product(connection: Any) -> str:
    if is_tidb(connection):
        return "TiDB"
    return "MariaDB" if "MariaDB" in connection.get_server_info() else "MySQL"


@dataclass(frozen=True, slots=True)
class _OnTidb:
    """The target is a TiDB; `compares`: its collations compare texts as their names say."""

    compares: bool


def _differences(
    before: Table | None, there: Table, mapped: Collection[str], on_tidb: _OnTidb | None, *, same_product: bool
) -> Iterator[str]:
    """Yield why a partition may have other rows on the target. Pure."""
    mine = partition_options(before.create_sql) if before is not None else None
    other = partition_options(there.create_sql)
    if before is None or mine is None or other is None:
        yield f"the source's table {_has(mine)}, the target's {_has(other)}"
        return
    if {"SYSTEM_TIME"} <= mine.words & other.words and not mine.sub and not other.sub:
        return  # all current rows are in one partition, and the history of the target is its own
    yield from _unlike(mine, other)
    if on_tidb and mine.sub:
        yield "TiDB has no subpartitions"
    keyed = "KEY" in mine.words
    if (keyed or "LINEAR" in mine.words) and not same_product:
        yield f"the source's product puts rows into partitions by {mine.method} in another way than the target's"
    if on_tidb and "HASH" in mine.words and not _is_of_filled_column(before, mine):
        yield "rows in which the expression of HASH is NULL are in another partition on TiDB"
    names = mine.names
    if keyed and (not mine.expression or mine.sub):
        names |= {str(name).lower() for key in before.indexes if key.primary for name in key.columns}
        if _primary(before) != _primary(there):
            yield "KEY may be by the primary key, and the tables have different ones"
    for column in before.columns:
        if column.name.lower() not in names:
            continue
        if column.name.lower() in {name.lower() for name in mapped}:
            yield f"a column mapping changes column {column.name}, on which the partition depends"
        yield from _other_column(column, _named(there, column.name), on_tidb, keyed=keyed)


def _has(options: PartitionOptions | None) -> str:
    return "has no partitions" if options is None else f"is partitioned by {_by(options)}"


def _unlike(mine: PartitionOptions, other: PartitionOptions) -> Iterator[str]:
    if (mine.method, mine.expression, mine.sub) != (other.method, other.expression, other.sub):
        yield f"the source's table is partitioned by {_by(mine)}, the target's by {_by(other)}"
    elif mine.parts != other.parts:
        pairs = zip([*mine.parts, None], [*other.parts, None], strict=False)
        one, two = next((one, two) for one, two in pairs if one != two)
        yield f"the partitions differ from one on: on the source {_told(one)}, on the target {_told(two)}"


def _by(options: PartitionOptions) -> str:
    sub = f", subpartitions by {' '.join(options.sub)}" if options.sub else ""
    return f"{options.method} ({' '.join(options.expression)}){sub}"


def _told(part: tuple[str, tuple[str, ...]] | None) -> str:
    return " ".join((part[0], *part[1])) if part is not None else "there is none"


def _is_of_filled_column(table: Table, options: PartitionOptions) -> bool:
    """Return whether the expression is a column that is never NULL."""
    column = _named(table, options.expression[0]) if len(options.expression) == 1 else None
    return column is not None and not column.nullable


def _other_column(column: Column, there: Column | None, on_tidb: _OnTidb | None, *, keyed: bool) -> Iterator[str]:
    """Yield why a column that decides about the partition may lead to another one on the target."""
    if there is None:
        yield f"the target's table lacks column {column.name}, on which the partition depends"
        return
    if keyed and (column.type not in INTEGERS or there.type != column.type):
        yield f"KEY is by the bytes of column {column.name}, which are known to be equal for integers of one type only"
    elif column.type != there.type and not {column.type, there.type} <= INTEGERS:
        yield f"column {column.name}, on which the partition depends, is {column.type}, and {there.type} on the target"
    elif there.fsp < column.fsp:
        yield f"column {column.name}, on which the partition depends, has fewer digits of a second on the target"
    elif column.collation and not (there.collation and same_collation(column.collation, there.collation)):
        yield f"column {column.name}, on which the partition depends, has another collation: {there.collation}"
    elif column.collation and on_tidb and not on_tidb.compares:
        yield f"the partition depends on the text of column {column.name}, and this TiDB compares texts byte by byte"


def _named(table: Table, name: str) -> Column | None:
    return next((column for column in table.columns if column.name.lower() == name.lower()), None)


def _primary(table: Table) -> list[tuple[str, ...]]:
    return [tuple(str(name).lower() for name in key.columns) for key in table.indexes if key.primary]
