"""Statements on merged tables with `shard-mode: pessimistic`: the effect of each on target and sharding group.

| statement | on the target | in the group |
|---|---|---|
| ALTER TABLE, CREATE INDEX, DROP INDEX | once, when all tables of all sources have met it | an item; its changes wait |
| CREATE TABLE | run where the target has no such table | the table joins, with the items whose structure it has |
| one that `binlog skip` leaves out | nothing | nothing; nobody waits for the table before it meets a DDL |
| DROP TABLE, DROP DATABASE, CREATE OR REPLACE DATABASE | nothing | the table leaves |
| TRUNCATE TABLE | nothing | nothing |
| RENAME TABLE within the target table | nothing | the table goes on under its new name |
| a RENAME that is left out, to another name | nothing | the table leaves, and joins the group of its new name |
| any other RENAME, CREATE OR REPLACE TABLE | refused | |
| CREATE DATABASE, ALTER DATABASE | run at once | nothing |
| one that is left out (a filter, `binlog skip`) | nothing | recorded while the table's changes wait, for the re-sync |
| one of which an event filter leaves nothing but AUTO_INCREMENT = n | nothing | as one that is left out |
| one that an operator replaces or adds to (`binlog replace`, `inject`) | as the statements of the operator | as these |
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

from unshard.config.task import ShardDrop
from unshard.ddl.own_names import without_own_names
from unshard.ddl.pieces import AlterOperation
from unshard.ddl.prepare import RoutedDdl
from unshard.ddl.renamed_table import without_columns
from unshard.ddl.rewrite import renames
from unshard.ddl.schema_equality import normal, without_widths
from unshard.ddl.statement import StatementKind
from unshard.errors import ShardError, Where
from unshard.log import logger
from unshard.model.position import Location, Position
from unshard.model.shape import misfits
from unshard.model.table import Table, TableName
from unshard.mysql.structure import read_table
from unshard.shard.group import ShardingGroup
from unshard.shard.same_ddl import only_sets_counter
from unshard.shard.sequence import DdlItem
from unshard.shard.shown_text import letters_as_shown
from unshard.sync.checkpoint.store import Also, nothing
from unshard.sync.sharding.coordinator import LOOK_SECONDS, ShardingGroups
from unshard.sync.sharding.owner import item_payload
from unshard.sync.sharding.table_owners import PATIENCE_SECONDS
from unshard.sync.source_log.reader import LoggedDdl
from unshard.sync.statements.plan_record import StatementPlan
from unshard.sync.statements.reader import COORDINATED
from unshard.sync.statements.uncoordinated import Passing
from unshard.target.sharding import load_keeper, own

_TAKING = frozenset({StatementKind.DROP_TABLE, StatementKind.TRUNCATE_TABLE})


@dataclass(frozen=True, slots=True)
class Shared:
    """The part of a statement that remains to be run after `ShardedStatements.share`.

    `pieces`: the operations, as they are run and tracked. `meets`: the table for which the statement is a sharding DDL;
    None where there is no such table.
    """

    pieces: tuple[AlterOperation, ...]
    meets: TableName | None = None


@dataclass(frozen=True, slots=True)
class Met:
    """A sharding DDL that one shard meets.

    `statements`: its statements for the target. `pieces`: its operations. `after`: the table's structure after the
    statement.
    """

    table: TableName
    statements: tuple[RoutedDdl, ...]
    pieces: tuple[AlterOperation, ...]
    after: Table


@dataclass(slots=True)
class ShardedStatements:
    """The handler of statements on the tables of sharding groups. Used by the sync unit's thread.

    `drop` is the task's `shard-drop`: whether a DROP or TRUNCATE of a shard stops the task or is ignored on the target.
    """

    groups: ShardingGroups
    drop: ShardDrop

    def share(self, found: Sequence[AlterOperation], where: Where) -> Shared:
        """Decide which operations of a statement are run, and which table meets it as a sharding DDL.

        Raises ShardError SHARD-021, 022, 023.
        """
        pieces = _without_lone_counters([self._at_once(piece, where) for piece in found])
        met = {part.tables[0] for piece in pieces for part in piece.run if part.kind in COORDINATED}
        if not met:
            return Shared(pieces)
        if len({name for piece in found for name in piece.ddl.tables}) > 1 or len(met) > 1:
            cause = "; ".join(piece.ddl.text for piece in found)[:500]
            raise ShardError("SHARD-022", replace(where, table=", ".join(map(str, sorted(met)))), cause)
        return Shared(pieces, met.pop())

    def _at_once(self, piece: AlterOperation, where: Where) -> AlterOperation:
        ddl = piece.ddl
        if ddl.kind in _TAKING or ddl.drops_schema:
            return self._taken(piece, where)
        if ddl.kind is StatementKind.CREATE_TABLE and piece.run:
            return self._created(piece, where)
        if any(renames(part) for part in piece.run):
            raise ShardError("SHARD-021", replace(where, table=str(ddl.tables[0])), ddl.text[:500])
        return piece

    def _taken(self, piece: AlterOperation, where: Where) -> AlterOperation:
        if piece.run and self.drop == "stop":
            raise ShardError("SHARD-023", where, piece.ddl.text[:500])
        if piece.run:
            words = {"position": str(where.position), "statement": piece.ddl.text[:500]}
            logger("sync", source=where.source or "").warning("left out on the target: shard-drop: ignore", **words)
        return replace(piece, run=())

    def _created(self, piece: AlterOperation, where: Where) -> AlterOperation:
        table = piece.ddl.tables[0]
        if piece.ddl.or_replace:
            raise ShardError("SHARD-021", replace(where, table=str(table)), piece.ddl.text[:500])
        target = self.groups.rules.route(table)
        there = self.groups.store.on_target(lambda c: read_table(c, target))
        return replace(piece, run=()) if there is not None else piece

    def last_known(self, table: TableName) -> Table | None:
        """Return the structure of a table that was dropped while its changes waited; None for any other.

        The copy of online DDL that takes its name began with it. The target's structure may lack the DDL that waits.
        """
        state = self.groups.keeper.group(self.groups.rules.route(table)).tables.get(table)
        form = state.last if state is not None and state.gone is not None else None
        return Table.from_dict(form) if form is not None else None

    def befores(self, table: TableName | None) -> list[Table]:
        """Return the table's structure before each statement that it waits with, as far as it is known."""
        if table is None:
            return []
        state = self.groups.keeper.group(self.groups.rules.route(table)).tables.get(table)
        forms = [item.payload["before"] for item in state.sequence.items] if state is not None else []
        return [Table.from_dict(form) for form in forms if form is not None]

    def meet(self, met: Met, work: LoggedDdl, at: Location, copied: Location | None = None) -> Also:
        """Add the statement to its table's sequence; the table's changes after it wait. Returns what writes the group.

        `copied`: the location of the table's own snapshot where that is later than the statement: the copy has the
        statement and all changes up to there.

        Raises ShardError SHARD-001 as `ShardingGroup.meet`, SHARD-038 as `ShardingGroups.refuse_connected`.
        """
        table, statements = met.table, met.statements
        group = self.groups.keeper.group(self.groups.rules.route(table))
        self.groups.refuse_connected(group.target, work.begin)
        before = self.groups.structure(table)
        assert before is not None, "a statement was run on a table that is not there"
        payload = item_payload(before if copied is None else None, statements)
        stamp = datetime.fromtimestamp(work.statement.timestamp, UTC).isoformat(timespec="seconds")
        texts = tuple(one.ddl.text for one in statements)
        item = DdlItem(Location(work.begin, at.gtid), copied or work.end, texts, payload, stamp)
        return self.groups.put(group.meet(table, item))

    def pass_by(self, passing: Passing) -> Also | None:
        """Update groups and members for a statement that need not wait. Returns what writes them; None: no change.

        Where such a statement changes only the upstream structure of a table whose changes wait, the structure before
        it is recorded, because the re-sync reads the table's changes again. A new table whose CREATE a human has left
        out does not become a member, even if an earlier attempt has declared it.

        Raises ShardError SHARD-002 as `ShardingGroup.add`, SHARD-024 and SHARD-030 for a new table that differs from
        the others, SHARD-025 where its target is busy for too long.
        """
        groups: dict[TableName, ShardingGroup] = {}
        route, allows = self.groups.rules.route, self.groups.rules.allows
        begin, end, changes = passing.begin, passing.end, passing.changes
        firsts: list[Table] = []

        def of(name: TableName) -> ShardingGroup:
            return groups.get(route(name)) or self.groups.keeper.group(route(name))

        stays = {old: new for old, new in passing.renamed.items() if allows(old) and allows(new)}
        stays = {old: new for old, new in stays.items() if route(old) == route(new)}
        for target in {route(old) for old in stays}:
            names = {old: new for old, new in stays.items() if route(old) == target}
            last = {old: self._last(of(old), old) for old in names}
            groups[target] = of(next(iter(names))).rename(names, begin, end, last)
        for name, table in changes.items():
            if table is None and name.table and allows(name) and name not in stays:
                groups[route(name)] = of(name).drop(name, begin, self._last(of(name), name))
        for name in sorted({*passing.made, *passing.renamed.values()}.difference(stays.values(), {passing.left})):
            if (born := changes.get(name)) is not None and allows(name):
                groups[route(name)] = self._with_made(of(name), born, passing)
                firsts += [born] if of(name).tables.keys() == {name} and not of(name).unresolved else []
        if passing.left is not None:
            groups[route(passing.left)] = of(passing.left).drop(passing.left, begin)
        stay = {name: table for name, table in changes.items() if table is not None and name not in passing.made}
        for name in stay if self.groups.unresolved else ():
            if not allows(name) or not of(name).unresolved or name not in of(name).tables:
                continue
            before = self.groups.structure(name)
            if before is not None and before != stay[name]:
                item = DdlItem(begin, end, (), {"before": before.to_dict()})
                groups[route(name)] = self._with_passed(of(name), item, before, stay[name], skipped=passing.skipped)
        if not groups:
            return None
        self._own_first(groups, begin.position)
        for table in firsts:
            self._refuse_unlike_target(table, begin.position)
        return self.groups.put(*groups.values(), left=passing.left)

    def again(self, plan: StatementPlan, begin: Position) -> Also:
        """Update groups and members for a statement that an earlier process left open. Raises as `pass_by`."""
        passing = plan.passing
        if passing is None:  # planned without `shard-mode`
            made = frozenset(plan.changes.keys() - self.groups.names)
            passing = Passing(Location(begin), plan.end, plan.changes, made=made)
        return self.pass_by(passing) or nothing

    def _last(self, group: ShardingGroup, name: TableName) -> dict[str, Any] | None:
        """Return the structure of a table about to be dropped or renamed, if changes of its group wait; else None."""
        found = self.groups.structure(name) if group.unresolved and name in group.tables else None
        return found.to_dict() if found is not None else None

    def _with_made(self, group: ShardingGroup, made: Table, passing: Passing) -> ShardingGroup:
        """Return the group with a table that the statement has created. Raises as `pass_by`."""
        met = self._met(group, made, passing.models.get(made.name), passing.begin.position)
        return group.add(made.name, passing.end, met)

    def _with_passed(
        self, group: ShardingGroup, item: DdlItem, before: Table, after: Table, *, skipped: bool
    ) -> ShardingGroup:
        """Return the group with a statement that is left out and leads a table of it from `before` to `after`."""
        return group.pass_by(after.name, item)

    def _met(self, group: ShardingGroup, made: Table, like: TableName | None, begin: Position) -> int:
        """Return how many of the group's unresolved items the structure of a new table already has.

        A table that is created LIKE a member has as many items as that member, if its structure fits. Any other has as
        many as its structure allows. Table options decide only where columns and keys do not: a new table may have
        other options.

        Raises ShardError SHARD-024 where its structure fits no number of items.
        """
        length = len(group.sequence)
        if not length:
            return 0
        fits = [met for met in range(length, -1, -1) if any(_alike(made, one) for one in self._behind(group, met))]
        has = {name: len(state.sequence) for name, state in group.tables.items()}
        if like is not None and has.get(like) in fits and has[like] >= has.get(made.name, 0):
            return has[like]
        exact = (met for met in fits if any(_options(made) == _options(one) for one in self._behind(group, met)))
        if fits:
            return next(exact, fits[0])
        where = Where(self.groups.store.source, str(made.name), str(begin))
        raise ShardError("SHARD-024", where, made.create_sql, {"target": str(group.target)})

    def _behind(self, group: ShardingGroup, met: int) -> Iterator[Table]:
        """Yield the structures that members had after their first `met` items and before the next one."""
        for name, state in group.tables.items():
            items = state.sequence.items
            if met > len(items):
                continue
            later = items[met] if met < len(items) else None
            since = items[met - 1].end.position if met else None
            between = [one for one in state.passed if since is None or since <= one.begin.position]
            between = [one for one in between if later is None or one.begin.position < later.begin.position]
            forms = [one.payload["before"] for one in (*between, *([later] if later is not None else []))]
            yield from (Table.from_dict(form) for form in forms if form is not None)
            if later is None:
                now = Table.from_dict(state.last) if state.last is not None else self.groups.structure(name)
                yield from [now] if now is not None else []

    def _refuse_unlike_target(self, first: Table, begin: Position) -> None:
        """Raise ShardError SHARD-030 if the first table of this source does not have the target's structure.

        The table joins after every DDL that is run on the target. A column that only the target has may have been added
        by hand, unless a sharding DDL was ever executed there.
        """
        store, tables = self.groups.store, self.groups.tables
        target = self.groups.rules.route(first.name)
        there = store.on_target(lambda c: read_table(c, target))
        if there is None:
            return
        there = without_columns(there, [one.column for one in tables.router.extracted(first.name, store.source)])
        faults = misfits(first, there)
        keeper = store.on_target(lambda c: load_keeper(c, store.meta, target))
        if not faults and keeper.executed:
            own = {column.name.lower() for column in first.columns}
            lacking = [one for one in there.columns if one.name.lower() not in own and not one.generated]
            faults = [f"it lacks column {one.name} {one.definition}" for one in lacking]
        if faults:
            where = Where(store.source, str(first.name), str(begin))
            raise ShardError("SHARD-030", where, values={"target": str(target), "faults": "; ".join(faults)})

    def _own_first(self, groups: Mapping[TableName, ShardingGroup], begin: Position) -> None:
        """Declare the first table of this source on each target; waits while a DDL is being run there.

        Raises ShardError SHARD-025 after PATIENCE_SECONDS.
        """
        store = self.groups.store
        ended = time.monotonic() + PATIENCE_SECONDS
        for target, group in groups.items():
            busy = [True]

            def ask(cursor: Any, target: TableName = target, group: ShardingGroup = group) -> None:
                busy[0] = not own(cursor, store.meta, store.source, target, group.tables.keys())  # noqa: B023

            while self.groups.keeper.group(target).tables.keys() < group.tables.keys():
                store.in_one(ask)
                if not busy[0]:
                    break
                if time.monotonic() > ended:
                    where = Where(store.source, str(target), str(begin))
                    raise ShardError("SHARD-025", where, values={"target": str(target)})
                time.sleep(LOOK_SECONDS)


def _without_lone_counters(found: Sequence[AlterOperation]) -> tuple[AlterOperation, ...]:
    """Leave a shard's counter out where it is all that an event filter leaves of a statement: nobody waits for it."""
    left = [part for piece in found for part in piece.run if part.kind in COORDINATED]
    if not any(piece.is_filtered for piece in found) or not all(only_sets_counter(part.text) for part in left):
        return tuple(found)
    return tuple(replace(piece, run=tuple(part for part in piece.run if part not in left)) for piece in found)


def _alike(one: Table, other: Table) -> bool:
    """Return whether two tables have the same columns and keys; their names and options may differ.

    So may the display widths of integers: a structure that a MariaDB or MySQL 5 has made shows them, one that was read
    from a later MySQL does not. A structure that was copied has letters in its defaults that most servers show as `?`
    (`dump.true_defaults`).
    """
    parts = [without_widths(_parts(table)[0]) for table in (one, other)]
    return parts[0] == parts[1] and _charsets(one) == _charsets(other)


def _options(table: Table) -> tuple[str, ...]:
    """Return the table options (comment, partitions and the like).

    They distinguish the structures before and after a statement that changes options only.
    """
    return _parts(table)[1]


def _parts(table: Table) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Split a SHOW CREATE text into columns with keys, and options. Names made from the table's name are left out."""
    parts = normal(letters_as_shown(without_own_names(table))) or ()
    depth, start = 0, 0
    for at, part in enumerate(parts):
        if part == "(":
            start = start or at
            depth += 1
        elif part == ")":
            depth -= 1
            if depth == 0:
                return parts[start:at], parts[at:]
    return parts[start:], ()


def _charsets(table: Table) -> tuple[str | None, ...]:
    """Return the columns' character sets, by which values are read. SHOW CREATE omits the table's default."""
    return tuple(column.charset for column in table.columns)
