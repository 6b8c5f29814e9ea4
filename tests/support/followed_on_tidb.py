"""Statements of a real source followed by its log into a TiDB, whose tables must hold the source's rows."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from support.followed_ddl import Followed
from unshard.ddl.evaluate import definition_of
from unshard.ddl.for_tidb import words_of
from unshard.model.shape import misfits
from unshard.model.table import Table, TableName
from unshard.mysql.connection import rows
from unshard.mysql.structure import read_table
from unshard.schema.definition import INTEGER_TYPES, DefaultKind, Dialect, TableDefinition
from unshard.schema.tidb import tidb_table


class OnTidb(Followed):
    """The same on a TiDB: the tracker has the source's structures, and the target's tables bear its rows."""

    def assert_equal(self) -> None:
        rows(self.source, "SET NAMES utf8mb4")
        assert sorted(name for name in self.tracker.names if name.table) == self.names(), self.ran[-3:]
        for name in self.names():
            upstream, tracked, there = read_table(self.source, name), self.tracker.get(name), self.there(name)
            assert upstream is not None, self.ran[-3:]
            assert tracked is not None, self.ran[-3:]
            assert there is not None, self.ran[-3:]
            assert (tracked.columns, tracked.indexes) == (upstream.columns, upstream.indexes), self.ran[-3:]
            assert misfits(upstream, there) == [], self.ran[-3:]
            assert self._looks(definition_of(there, Dialect.TIDB), upstream) == self._looks(
                tidb_table(self._definition(upstream), words_of(self.target, {}), []), upstream
            ), self.ran[-3:]

    def _definition(self, upstream: Table) -> TableDefinition:
        return definition_of(upstream, self.traits.dialect)

    def _looks(self, table: TableDefinition, upstream: Table) -> list[tuple[Any, ...]]:
        """The columns as an ALTER and a CREATE must leave them alike, without expressions, which each product words."""
        found = self._definition(upstream).columns
        computed = {one.name for one in found if one.default and one.default.kind is DefaultKind.EXPRESSION}
        return [
            (
                column.name,
                replace(column.type, arguments=() if column.type.name in INTEGER_TYPES else column.type.arguments),
                (column.charset, column.collation),
                (column.nullable, column.renewed, column.comment),
                (column.default.kind, column.default.text.strip("'"))
                if column.default is not None and column.name not in computed
                else None,
            )
            for column in table.columns
        ]

    def there(self, name: TableName) -> Table | None:
        return read_table(self.target, name)

    def column(self, table: str, name: str) -> tuple[Any, ...]:
        """Type, character set with collation, default and comment of a column on the target."""
        ((*found,),) = rows(
            self.target,
            "SELECT COLUMN_TYPE, COLLATION_NAME, COLUMN_DEFAULT, COLUMN_COMMENT FROM information_schema.COLUMNS"
            " WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s AND COLUMN_NAME = %s",
            (self.schema, table, name),
        )
        return tuple(found)

    def keys(self, table: str) -> dict[str, tuple[tuple[str, int], ...]]:
        """By name of a key on the target, its columns with their prefixes."""
        found = self.there(TableName(self.schema, table))
        assert found is not None
        return {key.name: tuple(zip(key.columns, key.prefixes, strict=True)) for key in found.indexes}
