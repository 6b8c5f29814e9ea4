"""Shards that alter themselves and a merged table that does what is decided, in memory."""

from __future__ import annotations

from itertools import count

from unshard.ddl.context import Context
from unshard.ddl.evaluate import definition_of, evaluate, operations
from unshard.ddl.parse import classify_ddl
from unshard.model.table import Table, TableName
from unshard.schema.definition import Dialect, TableDefinition
from unshard.schema.text import to_table
from unshard.shard.join import fill_of, joined_type
from unshard.shard.merged_difference import difference
from unshard.shard.merged_parts import MergedChange, ShardId, StructureRequest, names_of
from unshard.shard.merged_step import barrier_of
from unshard.shard.merged_table import MergedTable
from unshard.shard.shown_text import as_shown

NAME = TableName("all", "t")
CONTEXT = Context("all", mariadb=True)
BASE = """CREATE TABLE `t` (
  `id` bigint(20) NOT NULL,
  `v` varchar(20) NOT NULL,
  PRIMARY KEY (`id`)
) ENGINE=InnoDB"""
A, B, C = (
    ShardId("s1", TableName("s", "t_0")),
    ShardId("s1", TableName("s", "t_1")),
    ShardId("s2", TableName("s", "t")),
)
_ids = count()


def definition(create_sql: str = BASE) -> TableDefinition:
    return definition_of(Table(NAME, (), create_sql=f"{create_sql} DEFAULT CHARSET=utf8mb4"), Dialect.MARIADB)


def behind(before: TableDefinition, change: str) -> TableDefinition:
    """The structure behind `ALTER TABLE … change`."""
    table = to_table(before, NAME, Dialect.MARIADB)
    found = evaluate(classify_ddl(f"ALTER TABLE t {change}", CONTEXT), lambda _: table, lambda _: None)[NAME]
    assert found is not None
    return as_shown(definition_of(found, Dialect.MARIADB))


def why_barrier(before: TableDefinition, change: str) -> str:
    ddl = classify_ddl(f"ALTER TABLE t {change}", CONTEXT)
    return barrier_of(before, behind(before, change), operations(ddl))


class World:
    """Shards that alter themselves, and a target that does what is decided, as soon as it may."""

    def __init__(self, *shards: ShardId, base: str = BASE, note: bool = True) -> None:
        self.table = MergedTable(NAME)
        self.upstream = {shard: definition(base) for shard in shards}
        self.waiting: dict[ShardId, list[StructureRequest]] = {shard: [] for shard in shards}
        self.around: dict[str, tuple[TableDefinition, TableDefinition]] = {}
        self.note = note
        self.ran: list[str] = []
        for shard in shards:
            self.table = self.table.register(shard, definition(base), {"id", "v"})
        self.settle()

    def alter(self, shard: ShardId, change: str, left_out: str = "") -> None:
        """Alter a shard; an event filter leaves the operations `left_out` of the statement out of the target."""
        before = self.upstream[shard]
        after = behind(before, change)
        text = f"ALTER TABLE `all`.`t` {change}"
        request = StructureRequest(str(next(_ids)), after, why_barrier(before, change), (text,))
        self.upstream[shard] = behind(after, left_out) if left_out else after
        self.around[request.id] = before, self.upstream[shard]
        self.waiting[shard].append(request)
        self.settle()

    def leave_out(self, shard: ShardId, change: str, *, skipped: bool = False) -> None:
        """Alter a shard that waits for nothing; the statement is left out of the target, by a filter or as `skipped`.

        `skipped`: by a human.
        """
        before = self.upstream[shard]
        after = self.upstream[shard] = behind(before, change)
        structure = after if skipped else None
        self.table = self.table.altered(shard, names_of(before), names_of(after), structure)
        self.settle()

    def rename(self, old: ShardId, new: ShardId) -> None:
        """Rename a shard. If it waits, its old name stays, and both names wait with its statements."""
        waits = bool(self.waiting[old])
        self.table = self.table.renamed({old: new}, [old] if waits else [])
        self.upstream[new], self.waiting[new] = self.upstream[old], list(self.waiting[old])
        if not waits:
            del self.upstream[old], self.waiting[old]
        self.settle()

    def drop(self, shard: ShardId) -> None:
        self.table = self.table.without(shard)
        del self.upstream[shard], self.waiting[shard]
        self.settle()

    def settle(self) -> None:
        """All that may run now, until nothing may."""
        while True:
            for shard, requests in self.waiting.items():
                if requests and self.table.shards[shard].request is None:
                    if self.table.shards[shard].done == requests[0].id:
                        requests.pop(0)
                    if requests:
                        before, after = self.around[requests[0].id]
                        self.table = self.table.ask(shard, requests[0], before, names_of(after))
            if self.note:
                for source in self.table.sources:
                    self.table = self.table.noted(source)
            decision = self.table.evaluate()
            if decision.changes:
                self.make(decision.changes[0])
            elif decision.barrier:
                request = self.table.shards[decision.barrier[0]].request
                assert request is not None
                assert self.table.after is not None
                after = behind(self.table.after, request.ddls[0].removeprefix("ALTER TABLE `all`.`t` "))
                self.ran.append(request.ddls[0])
                self.table = self.table.done(self.table.at_barrier(decision, after))
            else:
                return
            self.check()

    def make(self, change: MergedChange) -> None:
        assert self.table.after is not None
        text = difference(NAME, self.table.after, change.after, Dialect.MARIADB)
        if text:
            self.ran.append(text)
            made = behind(self.table.after, text.removeprefix("ALTER TABLE `all`.`t` "))
            assert columns(made) == columns(change.after), text
            assert keys(made) == keys(change.after), text
        self.table = self.table.done(change)

    def check(self) -> None:
        """The target takes every row of every shard as it is."""
        after = self.table.after
        assert after is not None
        for state in self.table.shards.values():
            for column in state.structure.columns:
                there = after.column(column.name)
                assert there is not None
                joined = joined_type(there.type, column.type)
                assert joined_type(joined, there.type) == joined_type(there.type, there.type)
                assert there.nullable or not column.nullable
            source = next(iter(self.table.sources))
            fills = self.table.noted(source).seen[source].fills(names_of(state.structure))
            for column in after.columns:
                if column.name.lower() not in names_of(state.structure) | state.kept:
                    assert column.name.lower() in fills or column.name.lower() in self.table.leaving
                    assert column.nullable or column.default is not None

    @property
    def waits(self) -> dict[ShardId, str]:
        return {shard: wait.why for shard, wait in self.table.evaluate().waits.items()}

    @property
    def open(self) -> list[ShardId]:
        return sorted(shard for shard, requests in self.waiting.items() if requests)


def columns(table: TableDefinition | None) -> dict[str, tuple[object, ...]]:
    assert table is not None
    kinds = {c.name.lower(): (joined_type(c.type, c.type), bool(c.nullable), fill_of(c)) for c in table.columns}
    return dict(kinds)


def keys(table: TableDefinition | None) -> list[tuple[str, tuple[str, ...]]]:
    assert table is not None
    return sorted((key.name.lower(), key.columns) for key in table.keys)
