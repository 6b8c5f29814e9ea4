"""The record of target tables that a full copy fills: a copy loads only into tables that were empty when it began.

A table is recorded before its first row is written, so rows in a table without a record have another origin.

| the process dies | then |
|---|---|
| before the record | nothing was written; the next attempt looks again |
| after the record, before CREATE TABLE | the table is recorded as one that is filled, not as one that was made |
| after CREATE TABLE, before `note_made` | the same: a reset empties the table in place of dropping it |

Tables that statements of the log make later are recorded too (`sync.statements.steps`).

`target.forget.forget_task` keeps the records and marks them as those of an earlier attempt: the rows are still there.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

import MySQLdb

from unshard.errors import LoadError, Where
from unshard.model.table import TableName, quote_name
from unshard.mysql.connection import rows
from unshard.mysql.structure import IS_TABLE

SUFFIX = "load_table"
COUNTED = 1_000_000
"""The number of rows up to which a table's rows are counted; a count of all may take minutes."""
_AT_ONCE = 100
"""The number of tables that one statement asks about."""
_THERE = "SELECT 1 FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s"
_NAMED = "target_schema = %s AND target_table = %s"
_VERSIONED = 4137
"""MariaDB's refusal to truncate a system-versioned table."""
_CREATE = """
CREATE TABLE IF NOT EXISTS {name} (
    target_schema VARCHAR(64) NOT NULL,
    target_table VARCHAR(64) NOT NULL,
    source VARCHAR(32) NOT NULL,
    made BOOLEAN NOT NULL,
    had_rows BOOLEAN NOT NULL,
    earlier BOOLEAN NOT NULL,
    create_time TIMESTAMP NOT NULL DEFAULT CURRENT_TIMESTAMP,
    PRIMARY KEY (target_schema, target_table)
) ENGINE = InnoDB DEFAULT CHARSET = utf8mb4 COLLATE = utf8mb4_bin
"""


@dataclass(frozen=True, slots=True)
class Filled:
    """The record of a target table that the task fills.

    Args:
        source: the source that recorded it.
        made: the task created the table.
        had_rows: the table had rows of another origin when the copy began.
        earlier: the record is of an earlier attempt, which was forgotten since.
    """

    table: TableName
    source: str
    made: bool
    had_rows: bool
    earlier: bool


@dataclass(frozen=True, slots=True)
class FilledTables:
    """The access to one task's records of filled tables.

    Statements run on the given connection; driver errors are raised unchanged.
    """

    schema: str
    task: str

    @property
    def name(self) -> str:
        """Qualified and quoted name of the table of records."""
        return f"{quote_name(self.schema)}.{quote_name(f'{self.task}_{SUFFIX}')}"

    def create(self, connection: Any) -> None:
        """Create the table of records. Idempotent."""
        rows(connection, _CREATE.format(name=self.name))

    def there(self, connection: Any) -> bool:
        """Return whether the table of records exists."""
        return bool(rows(connection, _THERE, (self.schema, f"{self.task}_{SUFFIX}")))

    def read(self, connection: Any) -> dict[TableName, Filled]:
        """Return every record, by target table; none where the table of records does not exist."""
        if not self.there(connection):
            return {}
        columns = "target_schema, target_table, source, made, had_rows, earlier"
        found: dict[TableName, Filled] = {}
        for schema, table, source, *flags in rows(connection, f"SELECT {columns} FROM {self.name}"):
            name = TableName(str(schema), str(table))
            found[name] = Filled(name, str(source), *map(bool, flags))
        return found

    def claim(
        self, connection: Any, source: str, targets: Iterable[TableName], *, merges: bool, adopts: bool = False
    ) -> None:
        """Record the tables that `source` is about to fill. Idempotent; several sources may call it at the same time.

        `merges`: rows of others may be there. `adopts`: rows may be there that the task wrote before it kept records.
        The record of a table that an earlier attempt has made keeps `made`.
        Raises LoadError LOAD-025 for rows of an earlier attempt of the task, LOAD-026 for rows of others.
        """
        known, new, strange = self._look(connection, targets)
        adopts = adopts and not known
        if not adopts:
            self._refuse(connection, source, strange, known, merges=merges)
        found = [(name, name in known and known[name].made, name in strange and not adopts) for name in new]
        self._record(connection, source, found)

    def _record(self, connection: Any, source: str, found: Sequence[tuple[TableName, bool, bool]]) -> None:
        """Record tables, each with `made` and `had_rows`, over those of an earlier attempt."""
        if not found:
            return
        with connection.cursor() as cursor:
            cursor.executemany(
                f"DELETE FROM {self.name} WHERE {_NAMED} AND earlier",
                [(name.schema, name.table) for name, *_ in found],
            )
            cursor.executemany(
                f"INSERT IGNORE INTO {self.name} (target_schema, target_table, source, made, had_rows, earlier)"
                " VALUES (%s, %s, %s, %s, %s, FALSE)",
                [(name.schema, name.table, source, *flags) for name, *flags in found],
            )

    def check(
        self, connection: Any, source: str, targets: Iterable[TableName], *, merges: bool, adopts: bool = False
    ) -> None:
        """Raise what `claim` would raise now. Writes nothing."""
        known, _, strange = self._look(connection, targets)
        if known or not adopts:
            self._refuse(connection, source, strange, known, merges=merges)

    def _look(
        self, connection: Any, targets: Iterable[TableName]
    ) -> tuple[dict[TableName, Filled], list[TableName], list[TableName]]:
        """Return the records; the targets that this attempt has no record of; those of them that hold rows."""
        known = self.read(connection)
        current = {name for name, one in known.items() if not one.earlier}
        new = sorted(set(targets) - current)
        there = with_rows(connection, new)
        if there:  # another source of the task may have begun since; it records a table before its first row
            known = self.read(connection)
            current = {name for name, one in known.items() if not one.earlier}
        return known, new, [name for name in there if name not in current]

    def _refuse(
        self,
        connection: Any,
        source: str,
        strange: Sequence[TableName],
        known: dict[TableName, Filled],
        *,
        merges: bool,
    ) -> None:
        earlier = [name for name in strange if name in known]
        refused = earlier or ([] if merges else strange)
        if not refused:
            return
        first = refused[0]
        values = {
            "target": str(first),
            "rows": counted(connection, first),
            "more": f", and {len(refused) - 1:,} more tables hold such rows" if len(refused) > 1 else "",
            "records": self.name,
        }
        raise LoadError("LOAD-025" if earlier else "LOAD-026", Where(source, str(first)), values=values)

    def note_made(self, connection: Any, target: TableName) -> None:
        """Record that the task has created the table. Idempotent."""
        rows(connection, f"UPDATE {self.name} SET made = TRUE WHERE {_NAMED}", (target.schema, target.table))

    def expect(self, connection: Any, source: str, target: TableName) -> bool:
        """Record a table that a statement of the log is about to make; return whether the target lacks it.

        A table that is on record stays as it is recorded. One that the target has already is recorded with whether it
        has rows. Idempotent.
        """
        there = bool(rows(connection, _THERE, (target.schema, target.table)))
        known = self.read(connection).get(target)
        if known is None or known.earlier:
            had_rows = there and bool(with_rows(connection, [target]))
            self._record(connection, source, [(target, False, had_rows)])
        return not there

    def note_renamed(self, connection: Any, old: TableName, new: TableName) -> None:
        """Record that a table has another name. Idempotent."""
        if not rows(connection, f"SELECT 1 FROM {self.name} WHERE {_NAMED}", (old.schema, old.table)):
            return
        rows(connection, f"DELETE FROM {self.name} WHERE {_NAMED}", (new.schema, new.table))
        names = (new.schema, new.table, old.schema, old.table)
        rows(connection, f"UPDATE {self.name} SET target_schema = %s, target_table = %s WHERE {_NAMED}", names)

    def note_schema_gone(self, connection: Any, schema: str) -> None:
        """Delete the records of a schema's tables. Idempotent."""
        rows(connection, f"DELETE FROM {self.name} WHERE target_schema = %s", (schema,))

    def note_earlier(self, connection: Any) -> None:
        """Mark all records as those of an earlier attempt; drop the table of records where it is empty. Idempotent."""
        if not self.there(connection):
            return
        rows(connection, f"UPDATE {self.name} SET earlier = TRUE")
        if not rows(connection, f"SELECT 1 FROM {self.name} LIMIT 1"):
            rows(connection, f"DROP TABLE {self.name}")

    def note_gone(self, connection: Any, target: TableName) -> None:
        """Delete the record of a table. Idempotent."""
        if self.there(connection):
            rows(connection, f"DELETE FROM {self.name} WHERE {_NAMED}", (target.schema, target.table))


def with_rows(connection: Any, tables: Sequence[TableName]) -> list[TableName]:
    """Return the tables that exist and hold a row."""
    existing: set[tuple[str, str]] = set()
    ((folds,),) = rows(connection, "SELECT @@lower_case_table_names")
    asked = f"SELECT TABLE_NAME FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s AND {IS_TABLE}"
    for schema in sorted({name.schema for name in tables}):
        names = (str(table) for (table,) in rows(connection, asked, (schema,)))
        existing |= {(schema, name.lower() if int(folds) else name) for name in names}
    left = iter(
        [name for name in tables if (name.schema, name.table.lower() if int(folds) else name.table) in existing]
    )
    found: list[TableName] = []
    while some := list(islice(left, _AT_ONCE)):
        asked = " UNION ALL ".join(f"(SELECT {n} FROM {name.quoted} LIMIT 1)" for n, name in enumerate(some))
        found += [some[number] for number in sorted(int(number) for (number,) in rows(connection, asked))]
    return found


def empty_table(connection: Any, table: TableName) -> None:
    """Delete all current rows of a table. MariaDB does not truncate a system-versioned one, which keeps its history."""
    try:
        rows(connection, f"TRUNCATE TABLE {table.quoted}")
    except MySQLdb.Error as error:
        if error.args[0] != _VERSIONED:
            raise
        rows(connection, f"DELETE FROM {table.quoted}")


def counted(connection: Any, table: TableName) -> str:
    """Return how many rows a table holds, in words: "1 row", "1,234 rows", "over 1,000,000 rows"."""
    asked = f"SELECT COUNT(*) FROM (SELECT 1 FROM {table.quoted} LIMIT {COUNTED + 1}) some"
    ((number,),) = rows(connection, asked)
    if number > COUNTED:
        return f"over {COUNTED:,} rows"
    return "1 row" if number == 1 else f"{number:,} rows"
