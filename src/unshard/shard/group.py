"""ShardingGroup: the tables of one source that are routed to one target table, and which DDL each of them has met.

| a table has | its changes |
|---|---|
| nothing | go to the target |
| met a DDL (an item of its sequence) | wait for the re-sync from the item's end on: the table is *held* |
| resolved items, not yet re-synced | from `behind` on are re-synced to its next item, its DROP, or the main stream |

Every method returns a new group. DESIGN.md has the steps in order.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

from unshard.errors import ShardError, Where
from unshard.model.position import Location, Position
from unshard.model.table import TableName
from unshard.shard.gone import Gone, kept_behind
from unshard.shard.same_ddl import same
from unshard.shard.sequence import DdlItem, Form, Moved, ShardingSequence, place_form, place_of, side_by_side


@dataclass(frozen=True, slots=True)
class TableState:
    """The state of one source table in its group.

    Args:
        sequence: the unresolved DDL that the table has met.
        behind: the location from which its changes are not re-synced yet, though their DDL is resolved.
        gone: the location where it was dropped; it stays in the group for its changes that wait until there.
        last: the structure of a dropped table, in the caller's JSON form; a later table of the name may have another
            one.
        passed: statements that it met while it was held, that are not for the target and for which nobody waits.
        since: the location where the present re-sync began, which is kept until that of the whole group is done. The
            log is needed from there, as a prepared transaction may begin before `behind` and end after it.
        earlier: statements before all changes of the table that wait, but not before all waiting changes of the group.
    """

    sequence: ShardingSequence = field(default_factory=ShardingSequence)
    behind: Location | None = None
    gone: Location | None = None
    last: Form | None = None
    passed: tuple[DdlItem, ...] = ()
    since: Location | None = None
    earlier: tuple[DdlItem, ...] = ()

    @property
    def held_from(self) -> Location | None:
        """The location from which the table's changes are not in the target; None if all of them are."""
        if self.behind is not None:
            return self.behind
        return self.sequence.items[0].end if self.sequence.items else None

    @property
    def needs_log_from(self) -> Location | None:
        """The location from which the log is needed for this table; None where it is not held."""
        if self.behind is not None:
            return self.since or self.behind
        return self.sequence.items[0].begin if self.sequence.items else None

    @property
    def idle(self) -> bool:
        """True if the table is not held."""
        return self.held_from is None

    def next_behind(self, place: Position) -> DdlItem | None:
        """Return the first statement at or after a position; it has the structure of the table's changes before."""
        met = (*self.sequence.items, *self.passed, *self.earlier)
        later = [item for item in met if item.begin.position >= place]
        return min(later, key=lambda item: _position(item.begin), default=None)

    def until(self, at: Location) -> Location:
        """Return the end of the resolved changes' re-sync, while the main stream is `at`."""
        return self.sequence.items[0].begin if self.sequence.items else self.gone or at

    def met(self, item: DdlItem) -> TableState:
        """Return the state after the table has met a further statement. A dropped one is there again."""
        return replace(self, sequence=ShardingSequence((*self.sequence.items, item)), gone=None, last=None)

    def resynced(self, upto: Location, at: Location) -> TableState:
        """Return the table when all of its resolved changes before `upto` are in the target."""
        if self.behind is None:
            return self
        reached = max(self.behind, upto, key=_position)
        done = _position(reached) >= _position(self.until(at))
        if reached is self.behind and not done and not self.passed:  # it has not come to this table yet
            return self
        ahead = reached if self.sequence.items or not done else at
        passed = tuple(item for item in self.passed if _position(item.begin) >= _position(ahead))
        earlier = (*self.earlier, *(item for item in self.passed if item not in passed))
        return replace(self, behind=None if done else reached, passed=passed, earlier=earlier)

    @property
    def places(self) -> tuple[Location, ...]:
        """All locations that are on record."""
        met = (*self.sequence.items, *self.passed, *self.earlier)
        edges = [place for item in met for place in (item.begin, item.end)]
        return (*edges, *(place for place in (self.behind, self.gone, self.since) if place is not None))

    def moved(self, to: Moved) -> TableState:
        """Return the state with all locations translated to another server's log."""
        behind, gone, since = (to(place) if place else None for place in (self.behind, self.gone, self.since))
        kinds = (self.sequence.items, self.passed, self.earlier)
        items, passed, earlier = (tuple(item.moved(to) for item in kept) for kept in kinds)
        sequence = ShardingSequence(items)
        return replace(self, sequence=sequence, behind=behind, gone=gone, since=since, passed=passed, earlier=earlier)

    def to_dict(self) -> Form:
        """Return the JSON form, which `from_dict` reads."""
        return {
            "items": [item.to_dict() for item in self.sequence.items],
            "behind": place_form(self.behind) if self.behind else None,
            "gone": place_form(self.gone) if self.gone else None,
            "since": place_form(self.since) if self.since else None,
            "last": self.last,
            "passed": [item.to_dict() for item in self.passed],
            "earlier": [item.to_dict() for item in self.earlier],
        }

    @classmethod
    def from_dict(cls, form: Form) -> TableState:
        """Read the form of `to_dict`. Fields that earlier versions did not store get their defaults."""
        behind, gone, since = (place_of(form[n]) if form.get(n) else None for n in ("behind", "gone", "since"))
        kinds = ("items", "passed", "earlier")
        items, passed, earlier = (tuple(map(DdlItem.from_dict, form.get(name, ()))) for name in kinds)
        return cls(ShardingSequence(items), behind, gone, form.get("last"), passed, since, earlier)


@dataclass(frozen=True, slots=True)
class Resync:
    """A range of the log that a re-sync reads again.

    `windows`: of each table only the changes at or after the first location and before the second one are applied.
    `begin` advances as the range is read. `since` is where the re-sync began: its transactions were not prepared
    before.
    """

    begin: Location
    end: Location
    windows: Mapping[TableName, tuple[Location, Location]]
    since: Location

    @property
    def edge(self) -> Location:
        """Location where the next window begins or ends: up to there the changes of the same tables are applied."""
        edges = (edge for window in self.windows.values() for edge in window)
        return min((edge for edge in edges if _position(edge) > _position(self.begin)), key=_position, default=self.end)


@dataclass(frozen=True, slots=True)
class ShardingGroup:
    """The tables of `source` that are routed to `target`.

    `resolved` counts the DDL that the group has passed. `reported`: the group's report is in the lock across sources.
    `gone` are its tables that were dropped or renamed after the first change that waits, in the order of the log.
    """

    source: str
    target: TableName
    tables: Mapping[TableName, TableState] = field(default_factory=dict)
    resolved: int = 0
    reported: bool = False
    gone: tuple[Gone, ...] = ()

    @property
    def sequence(self) -> ShardingSequence:
        """The unresolved DDL of the group: the sequence of the table that is furthest."""
        return max((state.sequence for state in self.tables.values()), key=len, default=ShardingSequence())

    @property
    def unresolved(self) -> bool:
        """True if a table is held."""
        return any(not state.idle for state in self.tables.values())

    @property
    def held(self) -> dict[TableName, Location]:
        """The tables whose changes wait for the re-sync, each with the location from which they wait."""
        return {name: place for name, state in self.tables.items() if (place := state.held_from) is not None}

    @property
    def first(self) -> Location | None:
        """The location from which the log is needed; None if no table is held."""
        places = [place for state in self.tables.values() if (place := state.needs_log_from) is not None]
        return min(places, key=_position, default=None)

    @property
    def behind(self) -> bool:
        """True if some DDL is resolved and its re-sync is not done."""
        return any(state.behind is not None for state in self.tables.values())

    @property
    def synced(self) -> tuple[TableName, ...]:
        """The tables that have met the DDL which is resolved next."""
        return tuple(sorted(name for name, state in self.tables.items() if state.sequence.items))

    @property
    def unsynced(self) -> tuple[TableName, ...]:
        """The tables that have not met it and still can."""
        live = {name: state for name, state in self.tables.items() if state.gone is None}
        return tuple(sorted(name for name, state in live.items() if not state.sequence.items))

    @property
    def ready(self) -> DdlItem | None:
        """The DDL that all tables have met, as the last one met it; None while one lacks it or is to be re-synced."""
        if not self.tables or self.unsynced or self.behind:
            return None
        return max((state.sequence.items[0] for state in self.tables.values()), key=lambda item: _position(item.begin))

    def meet(self, table: TableName, item: DdlItem) -> ShardingGroup:
        """Add a DDL that the table has met. An unknown table becomes a member.

        Raises ShardError SHARD-001 where the group has another DDL in this place of its sequence.
        """
        state = self.tables.get(table, TableState())
        place = len(state.sequence)
        expected = self.sequence.items
        if place < len(expected) and not same(item.ddls, expected[place].ddls):
            other = next(name for name, one in self.tables.items() if one.sequence.items == expected)
            mine = (*state.sequence.items, item)
            where = Where(source=self.source, table=str(table), position=str(item.begin.position))
            cause = side_by_side(str(table), mine, str(other), expected)
            raise ShardError("SHARD-001", where, cause, {"target": str(self.target)})
        return self._with(table, state.met(item))

    def hold(self, table: TableName, item: DdlItem) -> ShardingGroup:
        """Add a DDL that the table has met, whatever others have met. Its changes after it wait for `release`."""
        return self._with(table, self.tables.get(table, TableState()).met(item))

    def release(self, table: TableName, at: Location) -> ShardingGroup:
        """Resolve the first DDL that this table waits with: the target has it. The main stream is `at`."""
        state = self.tables[table]
        first, *rest = state.sequence.items
        after = replace(state, sequence=ShardingSequence(tuple(rest)), behind=first.end, since=first.end)
        after = replace(after, earlier=(*state.earlier, first))
        return replace(self, resolved=self.resolved + 1)._with(table, after.resynced(first.end, at))

    def pass_by(self, table: TableName, item: DdlItem) -> ShardingGroup:
        """Record a statement that nobody waits for, where changes of the group wait."""
        state = self.tables[table]
        if not self.unresolved:
            return self
        if state.idle:
            return self._with(table, replace(state, earlier=(*state.earlier, item)))
        return self._with(table, replace(state, passed=(*state.passed, item)))

    def add(
        self, table: TableName, at: Location, met: int = 0, items: Sequence[DdlItem] | None = None
    ) -> ShardingGroup:
        """Add a table that was created, with the structure after the first `met` items; `at` is its CREATE's end.

        `items`: those of the table that it was; without them the group's.

        Raises ShardError SHARD-002 where it lacks a DDL that it will never meet: one that is reported to the other
        sources, or that an earlier table of its name has met.
        """
        state = self.tables.get(table, TableState())
        if state.gone is None and not state.idle:
            return self
        has = len(state.sequence)
        if met < max(has, self.reported):
            where = Where(source=self.source, table=str(table), position=str(at.position))
            values = {"target": str(self.target), "met": met, "needed": max(has, int(self.reported))}
            raise ShardError("SHARD-002", where, "; ".join(self.sequence.statements()), values)
        copies = tuple(item.at(at) for item in (self.sequence.items if items is None else items)[has:met])
        sequence = ShardingSequence((*state.sequence.items, *copies))
        return self._with(table, replace(state, sequence=sequence, gone=None, last=None))

    def drop(self, table: TableName, at: Location, last: Form | None = None) -> ShardingGroup:
        """Mark a table as dropped: nobody waits for it. Its changes that wait are re-synced up to `at`."""
        state = self.tables.get(table)
        if state is None:
            return self
        gone = self._gone(table, at, last)
        return replace(self, gone=gone)._with(table, replace(state, gone=at, last=last))

    def rename(
        self,
        names: Mapping[TableName, TableName],
        begin: Location,
        end: Location,
        last: Mapping[TableName, Form | None] | None = None,
    ) -> ShardingGroup:
        """Rename tables within the group, all at once: two may exchange their names. Raises as `add`."""
        renamed = self
        for old in names:
            renamed = renamed.drop(old, begin, (last or {}).get(old))
        now = [replace(one, became=names.get(one.name)) if one.at == begin else one for one in renamed.gone]
        renamed = replace(renamed, gone=tuple(now))
        for old, new in names.items():
            state = self.tables.get(old, TableState())
            renamed = renamed.add(new, end, len(state.sequence), state.sequence.items)
            if state.behind is not None and not state.sequence.items:  # the old name's changes are applied first
                renamed = renamed._with(new, replace(renamed.tables[new], behind=end, since=end))
        return renamed

    @property
    def places(self) -> tuple[Location, ...]:
        """All locations that are on record."""
        held = (place for state in self.tables.values() for place in state.places)
        return (*held, *(place for one in self.gone for place in one.places))

    def known_as(self, name: TableName, place: Position) -> TableName:
        """Return the last name of the table that has this name at a position of the log which is needed."""
        for one in self.gone:
            if one.name == name and one.became is not None and one.at.position > place:
                name, place = one.became, one.at.position
        return name

    def renamed_between(self, first: Position, last: Position) -> bool:
        """Return whether a table was renamed between two positions of the log that is needed."""
        return any(one.became is not None and first <= one.at.position <= last for one in self.gone)

    def structure_before(self, name: TableName, end: Position) -> tuple[bool, Form | None]:
        """Return whether a later statement has the structure of the table's changes up to `end`, and that structure.

        None where it is not on record: the copy has those changes, or the table was dropped and nothing was recorded.
        """
        ends = {one.at.position: one.last for one in self.gone if one.name == name}
        met = [item for one in self.gone if one.name == name for item in one.met]
        if name in self.tables:
            state = self.tables[name]
            met += (*state.sequence.items, *state.passed, *state.earlier)
        ends |= {item.begin.position: item.payload["before"] for item in met}
        later = min((place for place in ends if place >= end), default=None)
        return later is not None, ends[later] if later is not None else None

    def moved(self, to: Moved) -> ShardingGroup:
        """Return the group with its locations in another server's log, which has its transactions elsewhere."""
        tables = {name: state.moved(to) for name, state in self.tables.items()}
        return replace(self, tables=tables, gone=tuple(one.moved(to) for one in self.gone))

    def report(self) -> ShardingGroup:
        """Mark the group as reported; the transaction that saves it joins the lock."""
        return replace(self, reported=True)

    def resolve(self, at: Location) -> ShardingGroup:
        """Resolve the group's first DDL: the target has it. The main stream is `at`."""
        assert self.ready is not None, "only what all tables have met is resolved"
        tables = {}
        for name, state in self.tables.items():
            first, *rest = state.sequence.items
            after = replace(state, sequence=ShardingSequence(tuple(rest)), behind=first.end, since=first.end)
            after = replace(after, earlier=(*state.earlier, first))
            tables[name] = after.resynced(first.end, at)
        return replace(self, resolved=self.resolved + 1, reported=False)._of(tables)

    def resync(self, at: Location) -> Resync | None:
        """Return the range to read again before anything after `at`; None when all of it is done."""
        windows = {name: (one.behind, one.until(at)) for name, one in self.tables.items() if one.behind is not None}
        if not windows:
            return None
        begin = min((first for first, _ in windows.values()), key=_position)
        end = max((last for _, last in windows.values()), key=_position)
        since = min((self.tables[name].since or first for name, (first, _) in windows.items()), key=_position)
        return Resync(begin, end, windows, since)

    def resynced(self, upto: Location, at: Location) -> ShardingGroup:
        """Return the group when the re-sync has come to `upto`."""
        return self._of({name: state.resynced(upto, at) for name, state in self.tables.items()})

    def _with(self, table: TableName, state: TableState) -> ShardingGroup:
        return self._of({**self.tables, table: state})

    def _of(self, tables: Mapping[TableName, TableState]) -> ShardingGroup:
        kept = replace(self, tables=_kept(tables))
        return replace(kept, gone=kept_behind(self.gone, kept.first))

    def _gone(self, table: TableName, at: Location, last: Form | None) -> tuple[Gone, ...]:
        state = self.tables[table]
        met = (*state.sequence.items, *state.passed, *state.earlier)
        return (*self.gone, Gone(table, at, None, last, met)) if self.unresolved else ()


def _kept(tables: Mapping[TableName, TableState]) -> dict[TableName, TableState]:
    """Drop tables that are dropped and not held, and all records before the first location that is needed."""
    needed = (state.needs_log_from for state in tables.values())
    first = min((place for place in needed if place is not None), key=_position, default=None)
    kept = {name: state for name, state in tables.items() if state.gone is None or not state.idle}
    resyncs = any(state.behind is not None for state in tables.values())
    return {name: _from(state, first, resyncs=resyncs) for name, state in kept.items()}


def _from(state: TableState, first: Location | None, *, resyncs: bool) -> TableState:
    """Return the state without the records that lie before `first`, from where the log is needed."""
    since: Location | None = None
    earlier: tuple[DdlItem, ...] = ()
    if first is not None:
        since = max(state.since, first, key=_position) if state.since is not None and resyncs else None
        earlier = tuple(item for item in state.earlier if _position(item.begin) >= _position(first))
    if since is state.since and len(earlier) == len(state.earlier):  # as of most tables of a large group
        return state
    return replace(state, since=since, earlier=earlier)


def _position(place: Location) -> tuple[int, int]:
    return place.position.number, place.position.offset
