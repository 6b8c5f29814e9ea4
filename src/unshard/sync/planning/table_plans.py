"""Steps *filter* and *route* as far as names decide: which tables a batch takes and how each one is written."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace

from unshard.errors import ShardError, SyncError, UnshardError, Where
from unshard.model.position import Location, Position
from unshard.model.shape import misfits, without_made_up_key
from unshard.model.table import Column, Index, Table, TableName
from unshard.mysql.altered_values import passed_through, with_raw_columns
from unshard.mysql.defaults import constant_defaults
from unshard.mysql.types import zero_text
from unshard.sync.batch.plan import ConflictKey, TablePlan, TargetPlan
from unshard.sync.planning.target_tables import TargetTables
from unshard.transform.block_allow import HELPER, BlockAllowList
from unshard.transform.column_mapper import ColumnMapper
from unshard.transform.column_mapping import ColumnMapping
from unshard.transform.event_filter import EventFilter
from unshard.transform.extract import Constant, constants, with_constants
from unshard.transform.route import Router
from unshard.transform.row_filter import RowFilter

RENEWED = frozenset({"timestamp", "datetime"})
"""Types that can have ON UPDATE CURRENT_TIMESTAMP."""

FLOATING = frozenset({"float", "double"})
EXACT_TEXTS = frozenset({"float", "double", "decimal", "bit", "enum", "binary"})
ODD_COLLATIONS = ("hungarian", "_hu_", "lithuanian", "_lt_", "macce")
"""Parts of the names of collations in which `ccs` is `cscs`, `ch` is `c` or M is N: no simple form is coarser."""

HELD = "held for sharding DDL"
"""The rule, in the ledger, of row events that are read again after a sharding DDL."""

_OVERLAPS, _BY_HASH, _NOT_CLUSTERED = "WITHOUT OVERLAPS", "USING HASH", "NONCLUSTERED"
_FREE = "it has one unique key, whose values are equal just where their texts are: its rows may pass each other"
_KEYLESS = "it has no PRIMARY KEY and no UNIQUE key of NOT NULL columns, so all of its changes keep their order"
_UNLIKE = "its source tables write the values of its keys in different types: all of its changes keep their order"


@dataclass(slots=True)
class TableRules:
    """A source's rules, and the plans that they gave for the tables met so far.

    `allow`: the block-allow list. `router`: the routes. `mapper`: the column mappings. `structure` returns an upstream
    table as of the present position in the log; it is called once a table until `forget`. `targets`: the target's
    structures. `after`, `absent`: the tables' own later snapshots, and the names that have no table in theirs.
    `events`: the event filter. `row_filters` returns the rules that leave out rows of a table with that structure.
    `held`: tables whose changes, from these locations on, wait for a sharding DDL; they are read again after it.
    `fills` returns what a table's rows get in columns that only other shards have, and the table as they are written.
    `documents` returns the columns of a table, of source and target, whose opaque values in JSON stop the task.
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
    version: int = 0
    _known: dict[TableName, TablePlan] = field(default_factory=dict)
    _taken: dict[TableName, bool] = field(default_factory=dict)

    def takes(self, name: TableName) -> bool:
        """Return whether any row of the table is taken; the events of other tables are not decoded."""
        if name not in self._taken:
            self._taken[name] = self.allow.allows(name) and not self.events.drops_all_rows(name)
        return self._taken[name]

    def passes_over(self, name: TableName) -> str:
        """Return the rule, as the ledger names it, by which row events of the table are not decoded."""
        passage = self.allow.judge(name)
        if not passage.passes:
            return "online-ddl" if passage == HELPER else "block-allow-list"
        if name in self.held:
            return HELD
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

    def plans(
        self, names: Iterable[TableName], begin: Position, *, partial_images: bool = False
    ) -> tuple[TablePlan, ...]:
        """Return the plans of those tables that the rules take, for a batch from `begin` on, in order of names.

        Images that lack columns can't be folded into one another, so if the batch has any, all its tables are ordered.
        Raises SyncError SYNC-006, SYNC-007, ShardError SHARD-048, SHARD-049.
        """
        plans = [
            replace(self._plan(name), after=self._after(name, begin))
            for name in sorted(names)
            if self.takes(name) and name not in self.held and not (name in self.absent and self._after(name, begin))
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
        return TableRules(self.source, *ends, {}, *asked, fills=self.fills, documents=self.documents)

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
        unlike = {name for name, several in merged.items() if len(several) > 1 and not _alike(several)}
        return [
            replace(plan, target=replace(plan.target, ordered=True, why=_UNLIKE))
            if plan.target.name in unlike
            else plan
            for plan in plans
        ]

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
        written = plan_target(with_constants(own, (*added, *filled)), target, where, _plain(added))
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


def plan_target(upstream: Table, target: Table, where: Where, plain: Collection[str] = frozenset()) -> TargetPlan:
    """Return how rows of `upstream` are written to `target`. Raises SyncError SYNC-007 where they can't be.

    `plain` are columns, in lower case, whose values are equal only where their texts are.
    """
    target = without_made_up_key(target, upstream)
    written = [column for column in upstream.columns if not column.generated]
    faults = misfits(upstream, target)
    names = {column.name.lower() for column in upstream.columns}
    key = target.identity
    faults += [f"key column {name} is not in the source" for name in key if name.lower() not in names]
    if not faults:
        faults += _reordered(upstream, target, key or tuple(column.name for column in written))
    if faults:
        raise SyncError("SYNC-007", where, cause="; ".join(faults), values={"target": str(target.name)})
    columns = tuple(column.name for column in written)
    times = frozenset(column.name for column in written if column.type in RENEWED)
    enums = frozenset(column.name for column in written if column.type == "enum")
    zeros = tuple(
        (column.name, zero)
        for column in written
        if column.type == "enum" and column.members and (zero := zero_text(column))
    )
    if not key:
        text = frozenset(column.name for column in written if column.text_with_collation)
        json = frozenset(name for name in columns if target.column(name).type == "json")
        plan = TargetPlan(0, target.name, columns, columns, ordered=True, keyless=True, times=times, why=_KEYLESS)
        plan = replace(plan, enums=enums, zeros=zeros)
        return replace(plan, bytewise=text, documents=json, doubles=_doubles(upstream, target, columns))
    own = tuple(upstream.column(name).name for name in key)
    plan = TargetPlan(0, target.name, columns, own, times=times, enums=enums, zeros=zeros, why=_FREE)
    plan = replace(plan, doubles=_doubles(upstream, target, own))
    if _OVERLAPS in target.create_sql.upper():
        return replace(plan, ordered=True, why=f"a key of it is {_OVERLAPS}: all of its changes keep their order")
    texts = [target.column(name) for name in key if name.lower() not in plain]
    if len(target.unique_keys) == 1 and not any(map(_ambiguous, texts)):
        return plan
    ties = [_tie(upstream, target, index) for index in target.unique_keys]
    known = tuple(tie for tie in ties if tie is not None)
    if len(known) < len(ties):
        odd = [index.name for index, tie in zip(target.unique_keys, ties, strict=True) if tie is None]
        why = f"texts don't tell which rows share a value of {_either(odd)}, so all of its changes keep their order"
        return replace(plan, ordered=True, why=why)
    why = f"rows that may share a value of {_either([index.name for index in target.unique_keys])} keep their order"
    return replace(plan, ties=known, locked_upserts=len(known) > 1 and _met_by_key(target), why=why)


def _met_by_key(target: Table) -> bool:
    """Return whether INSERT … ON DUPLICATE KEY UPDATE finds an existing row by the primary key before any other.

    InnoDB writes the index that holds the rows first, and TiDB asks for the row's handle first: a clustered primary
    key. MariaDB asks unique keys that are hashed before it.
    """
    text = target.create_sql.upper()
    primary = any(index.primary for index in target.unique_keys)
    return primary and _BY_HASH not in text and _NOT_CLUSTERED not in text


def _either(names: Sequence[str]) -> str:
    names = sorted(names, key=str.lower)  # servers list keys in various orders
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} or {names[-1]}"


def _reordered(upstream: Table, target: Table, names: Iterable[str]) -> list[str]:
    """Return a fault for each SET column by which rows are found and whose values have another text in the target."""
    found = []
    for column, other in ((upstream.column(name), target.column(name)) for name in names):
        if column.type == "set":
            common = [member for member in other.members if member in column.members]
            if common != list(column.members):
                found.append(
                    f"column {column.name}, which rows are found by, is {column.definition}, in the target"
                    f" {other.definition}, with its members in another order"
                )
    return found


def _doubles(upstream: Table, target: Table, names: Iterable[str]) -> frozenset[str]:
    return frozenset(n for n in names if upstream.column(n).type == "float" and target.column(n).type == "double")


def _plain(added: Iterable[Constant]) -> frozenset[str]:
    """Return constants that no collation makes equal to another one: anything but text, and digits."""
    values = ((one.column.name.lower(), one.value) for one in added)
    return frozenset(
        name for name, value in values if not isinstance(value, str) or (value.isascii() and value.isdigit())
    )


def _tie(upstream: Table, target: Table, index: Index) -> ConflictKey | None:
    """Return a unique key's conflict key; None where images don't show it: the target makes it, or folds it oddly."""
    there = {column.name.lower(): column for column in upstream.columns if not column.generated}
    own = [there.get((name or "").lower()) for name in index.columns]
    forms = [_form(target.column(column.name)) for column in own if column is not None]
    if len(forms) < len(own) or None in forms:
        return None
    names = tuple(column.name for column in own if column is not None)
    return ConflictKey(names, index.prefixes, tuple(form for form in forms if form is not None))


def _form(column: Column) -> str | None:
    """Return the form in which step *causality* compares values of a key's column; None where none is coarse enough."""
    if column.generated or column.type == "set":
        return None
    if not column.text_with_collation or column.type == "enum":
        return "exact"
    collation = column.collation or ""
    if collation.endswith("_bin"):
        return "trimmed"
    return None if any(name in collation for name in ODD_COLLATIONS) else "folded"


def _alike(plans: Iterable[TablePlan]) -> bool:
    """Return whether the source tables of one target write equal values of its keys as equal texts."""
    written = set()
    for plan in plans:
        names = {name for tie in plan.target.ties for name in tie.columns} or set(plan.target.key)
        columns = [column for column in plan.table.columns if column.name in names]
        forms = tuple((c.name.lower(), c.type if c.type in EXACT_TEXTS else "", c.scale, c.fsp) for c in columns)
        written.add((plan.target.tied, forms))
    return len(written) == 1


def _ambiguous(column: Column) -> bool:
    """Return whether two different texts may be one key: collations fold case and blanks, floats have two zeros."""
    folds = column.text_with_collation and column.type not in ("enum", "set")
    return folds or column.type in FLOATING
