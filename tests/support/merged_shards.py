"""What must be true of shards that were merged by `partition id`: equal rows, each change and each DDL once."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from support.tidb_words import in_tidb_words
from unshard.model.table import TableName
from unshard.shard.same_ddl import normalised
from unshard.testing.applied_once import ddl_statements, not_once
from unshard.testing.binlog_count import RowEvent, row_log
from unshard.testing.compare import assert_equal
from unshard.testing.throwaway_server import ThrowawayServer
from unshard.testing.tidb_server import TidbServer

_DDL = re.compile(r"(alter table|create (unique )?index|drop index|rename table) ")
_TABLE = re.compile(r"alter table (?P<table>\w+) ")
_SETTINGS = re.compile(r"^(?:(?:use|set) [^;]*; )+")
TextRow = dict[str, str | None]


@dataclass(frozen=True, slots=True)
class MergedShards:
    """Tables `<name>_<i>.<table>_<j>` of the sources, in the target `<name>_all.<table>`; `parts` make an id."""

    name: str
    sources: Mapping[str, ThrowawayServer]
    target: ThrowawayServer
    parts: frozenset[str]
    table: str = "orders"

    @property
    def merged(self) -> TableName:
        return TableName(f"{self.name}_all", self.table)

    def assert_equal_rows(self) -> None:
        """The shards' rows, with those of `<name>_gone_<i>` that the target keeps, and none else."""
        places = [(server, table) for server in self.sources.values() for table in self._shards(server)]
        numbers = [n for n, server in enumerate(self.sources.values(), 1) for _ in self._shards(server)]
        mappings = [self._mapped(number, table) for number, (_, table) in zip(numbers, places, strict=True)]
        assert_equal(places, (self.target, self.merged), mapping=mappings)

    def assert_nothing_twice(self) -> None:
        """No UPDATE or DELETE that no shard has, none more often than it; no row inserted twice.

        A row may be inserted in a form that no INSERT of a shard has: as the copy found it.
        """
        upstream = (
            self._moved(event, self._bits(number, event.table))
            for number, server in enumerate(self.sources.values(), 1)
            for event in row_log(server)
            if self._is_shard(event.table)
        )
        against = not_once(upstream, self.target, [self.merged], copied=True)
        assert not against, "\n".join(against)

    def assert_statements(self, wanted: str, *, ordered: bool = True) -> None:
        """The DDL of merged tables in the target: just these statements, each once, in this order.

        A statement may name its schema or not. On a TiDB both sides are what its own form of them is.
        """
        done = (text for text in ddl_statements(self.target) if self.merged.schema in text)
        found = [self._told(text) for text in done if _DDL.match(self._normal(text))]
        told = [self._told(one) for one in re.split(r";\s*(?:\n|$)", wanted) if one.strip()]
        assert found == told if ordered else sorted(found) == sorted(told), found

    def _told(self, statement: str) -> str:
        """The statement without what two of them may differ in."""
        if isinstance(self.target, TidbServer) and (on := _TABLE.match(self._normal(statement))):
            ((collation,), *_) = next(iter(self.sources.values())).query("SELECT @@collation_server")
            statement = in_tidb_words(self.target, statement, replace(self.merged, table=on["table"]), str(collation))
        return self._normal(statement)

    def _normal(self, statement: str) -> str:
        text = normalised(_SETTINGS.sub("", statement))
        return text.replace(f"{self.merged.schema} . ", "")

    def _shards(self, server: ThrowawayServer) -> list[TableName]:
        names = server.query("SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES ORDER BY 1, 2")
        found = [TableName(schema, table) for schema, table in names]
        return [name for name in found if self._is_shard(replace(name, schema=name.schema.replace("_gone_", "_")))]

    def _is_shard(self, name: TableName) -> bool:
        schema, _, number = name.schema.rpartition("_")
        return schema == self.name and number.isdigit() and re.fullmatch(rf"{self.table}_\d+", name.table) is not None

    def _bits(self, source: int, name: TableName) -> int:
        """What stands in front of the ids of that table."""
        schema, table = (int(part.rpartition("_")[2]) for part in (name.schema, name.table))
        numbers = {"source": (source, 4), "schema": (schema, 7), "table": (table, 8)}
        bits, shift = 0, 63
        for part, (number, width) in numbers.items():
            if part in self.parts:
                shift -= width
                bits |= number << shift
        return bits

    def _mapped(self, source: int, name: TableName) -> Callable[[TextRow], TextRow]:
        bits = self._bits(source, name)
        return lambda row: _Lacking(row | {"id": str(bits | int(row["id"] or 0))})

    def _moved(self, event: RowEvent, bits: int) -> RowEvent:
        before, after = (
            (str(bits | int(image[0])), *image[1:]) if image else () for image in (event.before, event.after)
        )
        return RowEvent(self.merged, event.kind, before, after)


class _Lacking(TextRow):
    """A row that has NULL in columns that its table never got."""

    def __missing__(self, column: str) -> None:
        return None
