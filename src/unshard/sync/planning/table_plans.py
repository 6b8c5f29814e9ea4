"""The part of steps *filter* and *route* that depends on names: selects and plans the tables of a batch."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass, field, replace

from unshard.errors import ShardError, SyncError, UnshardError, Where
from unshard.log import logger
from unshard.model.position import Location, Position
from unshard.model.table import Table, TableName
from unshard.mysql.altered_values import passed_through, with_raw_columns
from unshard.mysql.defaults import constant_defaults
from unshard.sync.batch.plan import TablePlan, TargetPlan
from unshard.sync.planning.target_plan import UNLIKE, alike, plain_constants, plan_target
from unshard.sync.planning.target_tables import TargetTables
from unshard.transform.block_allow import HELPER, BlockAllowList
from unshard.transform.column_mapper import ColumnMapper
from unshard.transform.column_mapping import ColumnMapping
from unshard.transform.event_filter import EventFilter
from unshard.transform.extract import Constant, constants, with_constants
from unshard.transform.route import Router
from unshard.transform.row_filter import RowFilter

SEQUENCE = "sequence"
"""The rule, in the ledger, of row events by which a MariaDB logs that it has taken values of a sequence."""

MOST_VERDICTS = 20_000
"""The most names whose verdict by the rules is kept: a log may have ever new ones."""

HELD = "held for sharding DDL"
"""The rule, in the ledger, of row events that are read again after a sharding DDL."""


@dataclass(slots=True)
class TableRules:
    """A source's rules, and the plans that they gave for the tables met so far.

    Args:
        allow: the block-allow list.
        router: the routes.
        mapper: the column mappings.
        structure: returns an upstream table as of the present position in the log; called once a table until `forget`.
        targets: the target's structures.
        after: the tables' own later snapshots.
        events: the event filter.
        row_filters: returns the rules that exclude rows of a table with that structure.
        held: tables whose changes, from these locations on, wait for a sharding DDL; they are read again after it.
        absent: the names for which the later snapshots had no table.
        fills: returns the values that a table's rows get in columns that only other shards have, and the table without
            the columns that are not written.
        documents: returns the columns of a table, given of source and target, whose opaque values in JSON stop the
            task.
        is_sequence: returns whether a name is that of a sequence, which has row events and is no table.
        zone: the time zone of the source's sessions that set none; "" where it isn't known.
    """

    source: str
    allow: BlockAllowList
    router: Router
    mapper: ColumnMapper
    structure: Callable[[TableName], Table]
    targets: TargetTables
    after: Mapping[TableName, Position]
    events: EventFilter = field(default_factory=lambda: EventFilter({}))
    row_filters: Callable[[Table], tuple[RowFilter, ...]] = lambda table: ()
    held: Mapping[TableName, Location] = field(default_factory=dict)
    absent: Collection[TableName] = ()
    fills: Callable[[Table], tuple[tuple[Constant, ...], Table]] = lambda table: ((), table)
    documents: Callable[[Table, Table], frozenset[str]] = lambda table, there: frozenset()
    clamped: Callable[[Table, Table], frozenset[str]] = lambda table, there: frozenset()
    is_sequence: Callable[[TableName], bool] = lambda name: False
    zone: str = ""
    version: int = 0
    _sequences: set[TableName] = field(default_factory=set)
    _known: dict[TableName, TablePlan] = field(default_factory=dict)
    _taken: dict[TableName, bool] = field(default_factory=dict)

    def takes(self, name: TableName) -> bool:
        """Return whether any row of the table is taken; the events of other tables are not decoded."""
        if name not in self._taken:
            if len(self._taken) >= MOST_VERDICTS:
                self._taken.clear()
            self._taken[name] = self.allow.allows(name) and not self.events.drops_all_rows(name)
        return self._taken[name]

    def passes_over(self, name: TableName) -> str:
        """Return the rule, as the ledger names it, by which row events of the table are not decoded."""
        passage = self.allow.judge(name)
        if not passage.passes:
            return "online-ddl" if passage == HELPER else "block-allow-list"
        if name in self.held:
            return HELD
        if name in self._sequences:
            return SEQUENCE
        if self.takes(name):
            return "snapshot"  # its own copy, later than the checkpoint, has them
        return ", ".join(one.rule for one in self.events.row_filters(name))

    def forbidden(self, names: Iterable[TableName]) -> dict[TableName, dict[str, str]]:
        """Return the row events of these tables that stop the task, each with the rule that says so."""
        return {name: events for name in names if (events := self.events.forbidden(name))}

    def forget(self, names: Iterable[TableName]) -> None:
        """Drop what is cached of these upstream tables, and of all that share their targets.

        Called after a DDL, which may change either side. The rest stays, because reading ten thousand tables anew takes
        long.
        """
        names = set(names)
        self._sequences -= names
        targets = {self.router.route(name) for name in names}
        self._known = {name: plan for name, plan in self._known.items() if plan.target.name not in targets}
        self.targets.forget(targets)
        self.version += 1

    def begin(self, after: Mapping[TableName, Position], absent: Collection[TableName] = ()) -> None:
        """Go to another position in the log, before the later snapshots in `after`: all cached plans are dropped.

        Row events of an `absent` table before its snapshot are skipped: the copy of another table has their rows.
        """
        self.after, self.absent = after, absent
        self.targets.forget({plan.target.name for plan in self._known.values()})
        self._known = {}
        self._sequences = set()

    def plans(
        self, names: Iterable[TableName], begin: Position, *, partial_images: bool = False
    ) -> tuple[TablePlan, ...]:
        """Return the plans of those tables that the rules take, for a batch from `begin` on, in order of names.

        Images that lack columns can't be folded into one another, so if the batch has any, all its tables are ordered.
        Raises SyncError SYNC-006, SYNC-007, ShardError SHARD-048, SHARD-049.
        """
        taken = [
            name
            for name in sorted(names)
            if self.takes(name) and name not in self.held and not (name in self.absent and self._after(name, begin))
        ]
        plans = [
            replace(self._plan(name), after=self._after(name, begin))
            for name in taken
            if not self._leaves_out_sequence(name, begin)
        ]
        if partial_images:
            plans = [self._in_order(plan) for plan in plans]
        plans = self._comparable([self.targets.in_family(plan) for plan in _written_alike(plans, self.source)])
        numbers = {name: n for n, name in enumerate(sorted({plan.target.name for plan in plans}))}
        return tuple(
            replace(plan, target=replace(plan.target, id=numbers[plan.target.name]), id=place)
            for place, plan in enumerate(plans)
        )

    def with_structures(self, structures: Mapping[TableName, Table]) -> TableRules:
        """Return the same rules for tables as they were at an earlier position in the log."""
        ends = self.allow, self.router, self.mapper, structures.__getitem__, self.targets
        asked = self.events, self.row_filters
        return TableRules(
            self.source,
            *ends,
            {},
            *asked,
            fills=self.fills,
            documents=self.documents,
            clamped=self.clamped,
            zone=self.zone,
        )

    def reading(self, upstream: Table, target: TargetPlan) -> TablePlan:
        """Plan for reading a table only to learn which target keys its rows have; the rows are not written."""
        name, there = upstream.name, self.targets.get(target.name)
        where = Where(source=self.source, table=str(name))
        added = constants(self.router.extracted(name, self.source), upstream, target.name, there, where)
        mapping = self.mapper.mapping_for(name)
        return TablePlan(
            table=replace(upstream, create_sql=""),
            target=target,
            mapping=mapping.settled(upstream, there) if mapping is not None and there is not None else mapping,
            constants=added,
            filters=(*self.events.row_filters(name), *self._filters(upstream)),
        )

    @staticmethod
    def _comparable(plans: list[TablePlan]) -> list[TablePlan]:
        """Return the plans, ordered where the tables of one target write the values of its keys in different forms."""
        merged: dict[TableName, list[TablePlan]] = {}
        for plan in plans:
            if not plan.target.keyless:
                merged.setdefault(plan.target.name, []).append(plan)
        unlike = {name for name, several in merged.items() if len(several) > 1 and not alike(several)}
        return [
            replace(plan, target=replace(plan.target, ordered=True, why=UNLIKE)) if plan.target.name in unlike else plan
            for plan in plans
        ]

    def _leaves_out_sequence(self, name: TableName, begin: Position) -> bool:
        """Return whether the name is that of a sequence, which is asked and told once."""
        if name in self._known or name in self._sequences:
            return name in self._sequences
        found = self.is_sequence(name)
        if found:
            self._sequences.add(name)
            log = logger("sync", source=self.source, table=str(name), binlog=str(begin))
            log.warning("left out: the values of a sequence, which is not migrated")
        return found

    def _plan(self, name: TableName) -> TablePlan:
        if name not in self._known:
            self._known[name] = self._make_plan(name)
        return self._known[name]

    def _in_order(self, plan: TablePlan) -> TablePlan:
        defaults = constant_defaults(self.structure(plan.table.name))
        return replace(plan, target=replace(plan.target, ordered=True), defaults=tuple(sorted(defaults.items())))

    def _after(self, name: TableName, begin: Position) -> Position | None:
        """Return the table's own snapshot if it lies after `begin`; the next checkpoint forgets a passed one."""
        after = self.after.get(name)
        return after if after is not None and after > begin else None

    def _make_plan(self, name: TableName) -> TablePlan:
        upstream = self.structure(name)
        target_name = self.router.route(name)
        where = Where(source=self.source, table=str(name))
        target = self.targets.get(target_name)
        extracted = self.router.extracted(name, self.source)
        added = constants(extracted, upstream, target_name, target, where)
        if target is None:
            raise SyncError("SYNC-006", Where(source=self.source, table=str(target_name)))
        lacking, own = self.fills(upstream)
        filled = tuple(one for one in lacking if one.column.name.lower() not in {a.column.name.lower() for a in added})
        mapping = self.mapper.mapping_for(name)
        whole, plain = with_constants(own, (*added, *filled)), plain_constants(added)
        written = plan_target(whole, target, where, plain, lambda: self.zone)
        if filled and written.keyless:
            values = {"target": str(target_name), "columns": ", ".join(one.column.name for one in filled)}
            raise ShardError("SHARD-048", where, values=values)
        return TablePlan(
            table=self._as_read(upstream, target, mapping),
            target=written,
            mapping=mapping.settled(upstream, target) if mapping is not None else None,
            constants=(*added, *filled),
            kept=frozenset(one.column.name for one in filled if one.kept),
            filters=(*self.events.row_filters(name), *self._filters(upstream)),
            documents=self.documents(upstream, target),
            clamped=self.clamped(upstream, target),
        )

    def _as_read(self, upstream: Table, target: Table, mapping: ColumnMapping | None) -> Table:
        """Return the table as its images are read: text whose bytes the target takes stays bytes.

        That is not done where an expression filter looks at values.
        """
        lean = replace(upstream, create_sql="")
        if self._filters(upstream):
            return lean
        mapped = {mapping.source_column, mapping.target_column} if mapping is not None else set()
        return with_raw_columns(lean, passed_through(upstream, target) - mapped)

    def _filters(self, upstream: Table) -> tuple[RowFilter, ...]:
        try:
            return self.row_filters(replace(upstream, create_sql=""))
        except UnshardError as error:
            raise error.at(source=self.source) from error


def _written_alike(plans: list[TablePlan], source: str) -> list[TablePlan]:
    """Return the plans with the columns of one target in one order, because their rows share a statement.

    Raises ShardError SHARD-049 where tables of one target don't write the same columns.
    """
    first: dict[TableName, TargetPlan] = {}
    found = []
    for plan in plans:
        like = first.setdefault(plan.target.name, plan.target)
        if like.columns != plan.target.columns:
            own = {name.lower(): name for name in plan.target.columns}
            if own.keys() != {name.lower() for name in like.columns}:
                only = own.keys() ^ {name.lower() for name in like.columns}
                values = {"target": str(plan.target.name), "columns": ", ".join(sorted(only))}
                raise ShardError("SHARD-049", Where(source=source, table=str(plan.table.name)), values=values)
            columns = tuple(own[name.lower()] for name in like.columns)
            plan = replace(plan, target=replace(plan.target, columns=columns))
        found.append(plan)
    return found
