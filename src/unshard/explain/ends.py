"""Reads from the servers what an explanation of one source's table or statement needs, with `--connect`.

Only reads. DDL is tried on empty copies in scratch schemas of the target, as in a run; the copies are dropped at the
end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

import MySQLdb

from unshard.config.subtask import SubtaskConfig
from unshard.ddl.online import Records
from unshard.ddl.sandbox import ScratchPlace, show_create_database
from unshard.ddl.tracker import SchemaTracker
from unshard.model.table import Table, TableName
from unshard.mysql.connection import rows, server_error, session
from unshard.mysql.endpoint import to_endpoint
from unshard.mysql.structure import families, read_table, table_names
from unshard.shard.merged_table import MergedTable
from unshard.source.local_time import utc_of
from unshard.sync.planning.target_tables import TargetTables
from unshard.sync.statements.reader import SourceTraits
from unshard.target.meta import MetaTables
from unshard.target.online_ddl import load_records
from unshard.target.sharding import load_merged
from unshard.transform.source_rules import SourceRules
from unshard.worker.source_traits import read_traits

Name = TypeVar("Name")
Answer = TypeVar("Answer")
Landing = tuple[str, TableName]
"""A table of a source: (source id, name)."""


@dataclass(slots=True)
class Ends:
    """The state of a source and of the target, by which one of the source's statements or tables is explained.

    Args:
        traits: the source's properties that DDL depends on.
        target: the connection to the target.
        names: the tables of every source of the task that the rules accept.
        route: the target table of a source table.
        records: the recorded statements of ghost tables.
        clock: converts a time in the source's global time zone to UTC.
        pessimistic: whether the task has `shard-mode: pessimistic`.
        merged: in optimistic mode, the recorded merged tables; None in any other.
    """

    traits: SourceTraits
    target: Any
    tracker: SchemaTracker
    targets: TargetTables
    names: Sequence[Landing]
    route: Callable[[Landing], TableName]
    records: Records
    clock: Callable[[str], str | None]
    pessimistic: bool = False
    merged: Mapping[TableName, MergedTable] | None = None
    _landing: dict[TableName, list[Landing]] = field(default_factory=dict)

    def table(self, name: TableName) -> Table | None:
        """Return the source's table as it is now."""
        return self.tracker.get(name)

    def landing(self, target: TableName) -> list[Landing]:
        """Return every source table that is routed to that target table."""
        if not self._landing:
            for one in self.names:
                self._landing.setdefault(self.route(one), []).append(one)
        return self._landing.get(target, [])

    def own_names(self, source: str) -> list[TableName]:
        """Return the names that belong to the source."""
        return [name for owner, name in self.names if owner == source]


def names_of(configs: Sequence[SubtaskConfig]) -> list[Landing]:
    """Return the tables that every source has now and its rules accept. Raises SourceError."""
    found = []
    for config in configs:
        allows = SourceRules.of(config).allow.allows
        with session(to_endpoint(config.source.database), "source") as connection:
            found += [(config.source_id, name) for name in table_names(connection) if allows(name)]
    return found


@contextmanager
def connected(config: SubtaskConfig, configs: Sequence[SubtaskConfig], names: Sequence[Landing]) -> Iterator[Ends]:
    """Open connections to both ends of one source. Raises SourceError, TargetError, ConfigError CONFIG-004."""
    source, target = to_endpoint(config.source.database), to_endpoint(config.target)

    def asks(read: Callable[[Any, Name], Answer]) -> Callable[[Name], Answer]:
        def answer(name: Name) -> Answer:
            try:
                return read(upstream, name)
            except MySQLdb.Error as error:
                raise server_error(error, source, "source") from error

        return answer

    routers = {one.source_id: SourceRules.of(one).router for one in configs}
    with ExitStack() as stack:
        upstream = stack.enter_context(session(source, "source"))
        downstream = stack.enter_context(session(target, "target"))
        targets = TargetTables(partial(read_table, downstream))
        if config.target.checks_foreign_keys:
            targets.read_families = lambda: families(downstream)
        merged = _merged(downstream, config) if config.optimistic else None
        yield Ends(
            traits=read_traits(source),
            target=downstream,
            tracker=SchemaTracker(
                ScratchPlace(config.meta_schema, config.name, config.source_id),
                unknown=asks(read_table),
                schema_default=asks(show_create_database),
            ),
            targets=targets,
            names=names,
            route=lambda one: routers[one[0]].route(one[1]),
            records=_records(downstream, config),
            clock=partial(utc_of, source),
            pessimistic=config.pessimistic,
            merged=merged,
        )


def _merged(connection: Any, config: SubtaskConfig) -> dict[TableName, MergedTable]:
    """Return the recorded merged tables; empty if the task was never started."""
    there = _has_table(connection, config, "shard_merged")
    return load_merged(connection, MetaTables(config.meta_schema, config.name)) if there else {}


def _has_table(connection: Any, config: SubtaskConfig, suffix: str) -> bool:
    statement = "SELECT COUNT(*) FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s"
    ((there,),) = rows(connection, statement, (config.meta_schema, f"{config.name}_{suffix}"))
    return bool(there)


def _records(connection: Any, config: SubtaskConfig) -> Records:
    """Return the records of ghost tables; empty if the task was never started."""
    there = _has_table(connection, config, "onlineddl")
    return load_records(connection, MetaTables(config.meta_schema, config.name), config.source_id) if there else {}
