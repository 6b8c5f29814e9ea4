"""All tables of a source at the current position of its log, and what the next checkpoint must record of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from unshard.ddl.pieces import StatementRules
from unshard.ddl.tracker import Changes, SchemaTracker
from unshard.errors import SyncError, Where
from unshard.model.position import Location, Position
from unshard.model.table import Table, TableName
from unshard.sync.statements.earlier_lists import EarlierLists
from unshard.target.checkpoint import Checkpoint, TableCheckpoint

UNSURE = "SYNC-082"
"""The error code of a structure that can't be known for certain."""
NOT_COPIED = "SYNC-084"
"""The error code of a table whose rows an earlier block-allow list has left out."""


@dataclass(slots=True)
class TrackedTables:
    """The tables of one source as of the current position of its log. Used by the sync unit's thread.

    Args:
        tracker: the structures that are known here.
        upstream: the tables that the source has at the start, because another source may meet a statement on a merged
            table before this source has read its own.
        after: the positions of tables' own snapshots that lie after the checkpoint.
        absent: the names for which such a snapshot had no table.
        listing: reads anew which tables and schemas the source has, and then the end of its log; None where each one
            that the tracker lacks is a new one.
        copies: the task copies a table before it follows it.
        logs_creates: the source logs a CREATE TABLE IF NOT EXISTS also where the table is there.
        lazy: the tracker has a structure only of tables that were needed; else of each table that is there, and that
            the task copies.
        earlier: the block-allow lists by which the source has been followed.
        rules_of: returns the rules by which a table's rows are written, as text.
        refuse_read: called with a table whose structure is found when it is first needed; may raise.
    """

    source: str
    tracker: SchemaTracker
    rules: StatementRules
    upstream: frozenset[TableName] = frozenset()
    after: dict[TableName, Position] = field(default_factory=dict)
    absent: frozenset[TableName] = frozenset()
    listing: Callable[[], tuple[frozenset[TableName], frozenset[str], Position]] | None = None
    copies: Callable[[TableName], bool] = lambda name: True
    logs_creates: bool = True
    lazy: bool = False
    earlier: EarlierLists | None = None
    rules_of: Callable[[TableName], str] = lambda name: ""
    refuse_read: Callable[[TableName], None] = lambda name: None
    _snapshots: dict[TableName, Location] = field(default_factory=dict)
    _changed: Changes = field(default_factory=dict)
    _names: set[TableName] = field(default_factory=set)
    _schemas: set[str] = field(default_factory=set)
    _gone: set[TableName] = field(default_factory=set)
    _now: frozenset[TableName] = frozenset()
    _come: set[TableName] = field(default_factory=set)
    _written: dict[TableName, str] = field(default_factory=dict)
    _listed: Position | None = None

    def __post_init__(self) -> None:
        self._names |= self.upstream

    def restore(self, checkpoint: Checkpoint) -> None:
        """Go to a checkpoint: load its structures and later snapshots, and forget all that is known after it.

        DM's rows have only the location of a table. A table with a later location gets the target's structure; the
        others are dropped. What is known of a name that the rules leave out now is forgotten with the next checkpoint:
        from here on its statements are not followed.
        """
        if self.earlier is not None:
            self.earlier.restore()
        if self.listing is not None:
            names, schemas, self._listed = self.listing()
            self.upstream, self._now = names if self.lazy and self.logs_creates else self.upstream, names
            self._schemas, self._gone, self._come = set(schemas), set(), set()
        states = {name: state for name, state in checkpoint.tables.items() if self._is_followed(name)}
        tables = {name: state.table for name, state in states.items()}
        self.absent = frozenset(name for name, table in tables.items() if table is not None and table.is_absent)
        self.tracker.begin({name: table for name, table in tables.items() if table and name not in self.absent})
        self._names = set(self.upstream | self.tracker.names)
        self._changed = dict.fromkeys(checkpoint.tables.keys() - states.keys())
        self._written = {name: state.rules for name, state in states.items() if state.rules}
        self._changed |= {
            name: table for name, table in tables.items() if name not in self._written and self._rules_for(name, table)
        }
        self._snapshots = {
            name: state.location
            for name, state in states.items()
            if state.location and state.location.position > checkpoint.location.position
        }
        for name in [name for name, table in tables.items() if table is None]:
            found = self.tracker.get(name) if name in self._snapshots and self.rules.allows(name) else None
            self._record({name: found})
            if found is None:
                self._snapshots.pop(name, None)
        self.after = {name: location.position for name, location in self._snapshots.items()}

    def refuse_other_rules(self) -> None:
        """Raise SyncError SYNC-085 for a table whose rows in the target were written by other rules than the present.

        Called after `restore`.
        """
        now = {name: self.rules_of(name) for name in self._written}
        if others := sorted(name for name, rules in self._written.items() if rules != now[name]):
            name, more = others[0], len(others) - 1
            values = {"before": self._written[name], "now": now[name], "more": f" ({more} more)" if more else ""}
            raise SyncError("SYNC-085", Where(self.source, str(name)), values=values)

    def structure(self, name: TableName) -> Table:
        """Return the present structure of an upstream table. Raises SyncError SYNC-009 where it is not known."""
        found = self.find(name)
        if found is None:
            raise SyncError("SYNC-009", Where(source=self.source, table=str(name)))
        return found

    def find(self, name: TableName) -> Table | None:
        """Return the present structure of an upstream table; None where it is not known."""
        known = self.tracker.knows(name)
        found = self.tracker.get(name)
        if found is not None and not known:
            self.refuse_read(name)
            self._record({name: found})
        return found

    def find_or_presume(self, name: TableName) -> Table | None:
        """Return as `find`; where the structure can't be known for certain, the one that is presumed, unrecorded."""
        try:
            return self.find(name)
        except SyncError as error:
            if error.code not in (UNSURE, NOT_COPIED):
                raise
            return self.tracker.presume(name)

    def is_late(self, name: TableName) -> bool:
        """Return whether the rules take the table, and an earlier list left it out: its rows from then are missing."""
        late = self.earlier is not None and self.rules.allows(name) and self.earlier.leave_out(name)
        return late and not self.tracker.knows(name)

    def was_there(self, name: TableName, place: Position) -> bool | None:
        """Return whether the source had a table, or a schema (`schema_row`), before `place`; None: unknown.

        The tracker does not have it. It is unknown before the place in the log from which on the known names are those
        of the source, unless it was dropped since.
        """
        if name in self._come:
            return True
        if self._listed is None or self._would_have(name) or name in self._gone:
            return False
        if place < self._listed:
            return None
        return name in self._names if name.table else name.schema in self._schemas

    def _would_have(self, name: TableName) -> bool:
        """Return whether the tracker has the table if that was there before a CREATE in the log."""
        if not name.table or not self.logs_creates:
            return bool(name.table)
        return not self.lazy and self.copies(name) and not self.is_late(name)

    def later_snapshot(self, name: TableName, place: Position) -> Location | None:
        """Return the location of the table's own snapshot if that lies after `place`; else None."""
        found = self._snapshots.get(name)
        return found if found is not None and found.position > place else None

    @property
    def names(self) -> frozenset[TableName]:
        """All known tables of this source."""
        return frozenset(self._names)

    @property
    def first(self) -> frozenset[TableName]:
        """The tables that are known at a start, and those of which a human has brought the rows.

        Of the latter some may be made only later in the log: their CREATE is still to come, and their DDL after it.
        """
        listed = self._now if not self.lazy else self.upstream
        brought = {name for name in listed if self.lazy or not self.copies(name)}
        return self.tracker.names | {name for name in brought if not self.is_late(name)}

    @property
    def present(self) -> frozenset[TableName]:
        """The tables of this source at the current position; with `lazy` also those that it got later."""
        return self.names if self.lazy else self.tracker.names

    @property
    def targets(self) -> frozenset[TableName]:
        """The target tables of all known tables of this source that the rules allow."""
        return frozenset(map(self.rules.route, filter(self.rules.allows, (name for name in self._names if name.table))))

    def names_in(self, target: TableName) -> int:
        """Return how many known tables of this source are routed to that target table."""
        names = (name for name in self._names if name.table and self.rules.allows(name))
        return sum(self.rules.route(name) == target for name in names)

    def apply(self, changes: Mapping[TableName, Table | None]) -> None:
        """Apply the `changes` of a statement; None: the table is dropped."""
        self.tracker.apply(changes)
        self._record(changes)

    def come(self, names: frozenset[TableName]) -> None:
        """Note that tables of these names are there now, whose structures are not known."""
        self._names |= names
        self._come |= names

    @property
    def changed(self) -> bool:
        """True if the next checkpoint has a structure to record."""
        return bool(self._changed)

    def take_changes(self, at: Position) -> dict[TableName, TableCheckpoint]:
        """Return the tables' records for the checkpoint at `at`; each change is returned once.

        A table whose own snapshot lies before `at` needs its location no longer.
        """
        passed = {name for name, location in self._snapshots.items() if location.position <= at}
        for name in passed:
            del self._snapshots[name]
        known = {name: self.tracker.get(name) if self.tracker.knows(name) else None for name in passed}
        changes = known | self._changed
        self._changed = {}
        return {
            name: TableCheckpoint(table, self._snapshots.get(name), self._rules_for(name, table))
            for name, table in changes.items()
        }

    def _rules_for(self, name: TableName, table: Table | None) -> str:
        """Return the rules to record with a table; "" for what has no rows in the target."""
        has_rows = table is not None and not table.is_absent and name.table and self.rules.allows(name)
        return self.rules_of(name) if has_rows else ""

    def _is_followed(self, name: TableName) -> bool:
        return self.rules.allows(name) if name.table else self.rules.allows_schema(name.schema)

    def _record(self, changes: Mapping[TableName, Table | None]) -> None:
        self._changed |= changes
        self._come -= changes.keys()
        self._names |= {name for name, table in changes.items() if table is not None}
        gone = {name for name, table in changes.items() if table is None}
        self._names -= gone
        self._gone = (self._gone | gone) - (changes.keys() - gone)
        self._schemas -= {name.schema for name in gone if not name.table}
