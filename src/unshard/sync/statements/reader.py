"""Reads a statement of the log, or one that an operator gives, into operations to run and to track."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial

from unshard.binlog.transaction_range import PlainStatement
from unshard.ddl.context import Context, mariadb_flags, mysql_flags
from unshard.ddl.online import Records
from unshard.ddl.parse import classify, classify_ddl
from unshard.ddl.pieces import AlterOperation, StatementRules, given_pieces, parse_given, pieces
from unshard.ddl.rewrite import renames
from unshard.ddl.statement import Ddl, Skipped, StatementKind
from unshard.ddl.tracker import SchemaTracker, schema_row
from unshard.errors import DdlError, SyncError, Where
from unshard.log import logger
from unshard.model.position import Position
from unshard.model.table import TableName
from unshard.schema.definition import Dialect
from unshard.sync.source_log.reader import LoggedDdl
from unshard.sync.statements.crossings import Crossing, across, concerned, unlisted
from unshard.sync.statements.event_filter import classify_logged, judge_and_log
from unshard.transform.event_filter import EventFilter


@dataclass(frozen=True, slots=True)
class SourceTraits:
    """The properties of the source on which a statement's meaning depends.

    Args:
        mariadb: it is a MariaDB server.
        lower_case_names: it stores names in lower case.
        time_zone: the time zone that SYSTEM is on it (`source.system_zone`).
        dialect: the syntax of its SHOW CREATE TABLE.
        explicit_defaults: its explicit_defaults_for_timestamp, for statements whose event does not record theirs.
        logs_defaults: a MariaDB that records it in each event where it is on.
        default_zone: the time zone of a session that sets none.
        inline_references: it makes a foreign key of REFERENCES in a column's definition.
        logs_creates: it logs a CREATE TABLE IF NOT EXISTS also where the table is there, and nothing is done.
        keeps_name: asks the source, in its present state, whether it has the first table as it was before that time
            (seconds since 1970) and lacks the second.
        kind_of: asks the source for the TABLE_TYPE that it has under a name now, "" where it has none.
    """

    mariadb: bool
    lower_case_names: bool
    time_zone: str
    dialect: Dialect = Dialect.MARIADB
    explicit_defaults: bool | None = None
    logs_defaults: bool = True
    default_zone: str = ""
    inline_references: bool = True
    logs_creates: bool = True
    keeps_name: Callable[[TableName, TableName, float], bool] = lambda old, new, before: False
    kind_of: Callable[[TableName], str] = lambda name: ""


def logged_context(statement: PlainStatement, traits: SourceTraits, where: Where) -> Context:
    """Return the session that a statement had on its source, as its event records it."""
    query = statement.query
    zone = query.time_zone or ""
    flags = mariadb_flags(query, logs_defaults=traits.logs_defaults) if traits.mariadb else mysql_flags(query)
    if flags["explicit_defaults_for_timestamp"] is None:
        flags["explicit_defaults_for_timestamp"] = traits.explicit_defaults
    return Context(
        schema=query.schema,
        sql_mode=query.sql_mode,
        timestamp=statement.timestamp + (query.microseconds or 0) / 1e6,
        time_zone=traits.time_zone if zone.upper() == "SYSTEM" else zone,
        default_zone=traits.default_zone,
        collation_connection=query.connection_collation,
        collation_server=query.server_collation,
        mariadb=traits.mariadb,
        **flags,
        auto_increment=query.auto_increment,
        lower_case_names=traits.lower_case_names,
        inline_references=traits.inline_references,
        where=where,
    )


ENTERS = "DDL-011"
"""The error code of a statement by which an excluded table gets a followed name."""
COORDINATED = frozenset({StatementKind.ALTER_TABLE, StatementKind.CREATE_INDEX, StatementKind.DROP_INDEX})
"""Statements on merged tables that all sources must meet before one of them runs."""


@dataclass(frozen=True, slots=True)
class RoutedStatement:
    """The operations that a statement becomes on the target.

    `found`: the operations to run and to track. `online`: changes to the records of ghost tables. `note`: text for the
    operator's record. `entered`: followed tables that come from excluded names, so that their structures aren't known.
    """

    found: tuple[AlterOperation, ...] = ()
    online: Records = field(default_factory=dict)
    note: str = ""
    entered: frozenset[TableName] = frozenset()


@dataclass(frozen=True, slots=True)
class StatementReader:
    """The reader of one source's statements, which filters, routes and splits them. It changes nothing.

    `was_there`: as `TrackedTables.was_there`.
    """

    source: str
    traits: SourceTraits
    tracker: SchemaTracker
    rules: StatementRules
    events: EventFilter
    was_there: Callable[[TableName, Position], bool | None] = lambda name, place: False

    def given(self, text: str, work: LoggedDdl, where: Where) -> tuple[AlterOperation, ...]:
        """Return the operations of an operator's statement, in the logged statement's session.

        Of the rules only the block-allow list is applied. Raises DdlError DDL-026 where it is no DDL, or a name in it
        has no schema, DDL-033 where the block-allow list keeps it out.
        """
        context = replace(logged_context(work.statement, self.traits, where), schema="", inline_references=True)
        return given_pieces(parse_given(text, context), self.rules, self.tracker.get)

    def followed(self, work: LoggedDdl, where: Where, rules: StatementRules) -> RoutedStatement:
        """Return the statement's operations for tracking only; none of them is run.

        A RENAME of an excluded table to a followed name is no error here.
        """
        parsed = classify(work.statement.sql, logged_context(work.statement, self.traits, where))
        if (
            isinstance(parsed, Skipped)
            or parsed.kind in (StatementKind.TEMPORARY_TABLE, StatementKind.TABLE_FILES)
            or self._without_effect(parsed, work.begin)
        ):
            return RoutedStatement()
        online, entered = rules.online.changes(parsed, rules.allows), frozenset[TableName]()
        try:
            own = pieces(parsed, rules, self.tracker.get)
        except DdlError as error:
            if error.code != ENTERS:
                raise
            known, entered = without_entering(parsed, rules)
            if not entered:
                raise
            own = pieces(known, rules, self.tracker.get) if known is not None else ()
        return RoutedStatement(tuple(replace(one, run=()) for one in own), online, entered=entered)

    def _without_effect(self, parsed: Ddl, place: Position) -> bool:
        """Return whether the statement did nothing upstream; a CREATE IF NOT EXISTS is logged all the same."""
        if self.tracker.without_effect(parsed):
            return True
        made = made_if_missing(parsed)
        return made is not None and self.was_there(made, place) is True

    def made(self, work: LoggedDdl, where: Where) -> TableName | None:
        """Return the followed table that the statement creates; None where it creates none or can't be read."""
        try:
            parsed = classify(work.statement.sql, logged_context(work.statement, self.traits, where))
        except DdlError:
            return None
        if isinstance(parsed, Skipped) or parsed.kind is not StatementKind.CREATE_TABLE:
            return None
        return parsed.tables[0] if self.rules.allows(parsed.tables[0]) else None

    def own(
        self,
        work: LoggedDdl,
        where: Where,
        after: Mapping[TableName, Position],
        *,
        unlocked: bool = False,
        sharded: bool = False,
    ) -> RoutedStatement:
        """Return the plan for the statement itself; `after` has the snapshots of tables that were copied later.

        With `sharded`, a DDL that the copy of such a table has already is met all the same: it is run, and not tracked.

        Raises SyncError SYNC-013, SYNC-014, SYNC-047, DdlError DDL-042.
        """
        parsed = classify_logged(work.statement.sql, logged_context(work.statement, self.traits, where), self.events)
        if isinstance(parsed, Skipped):
            logger("sync", source=self.source).info("statement skipped", position=str(work.begin), reason=parsed.reason)
            return RoutedStatement()
        if work.statement.query.error_code and parsed.kind is not StatementKind.DROP_TABLE:
            values = {"number": work.statement.query.error_code}
            raise SyncError("SYNC-013", where, cause=parsed.text[:500], values=values)
        if parsed.kind is StatementKind.RENAME_TABLE:
            real = self._without_temporary(parsed) if self.traits.mariadb else parsed
            real = self._without_views(real) if real is not None else None
            if real is None:
                return RoutedStatement()
            parsed = real
        own = concerned(parsed, self.rules.online, self.rules.allows)
        copied = {name for name in own if after.get(name, work.begin) > work.begin}
        if copied == own != set():
            met = self._met_in_copy(parsed) if sharded and all(map(self.tracker.knows, own)) else ()
            return RoutedStatement(met, self.rules.online.forgotten(parsed))
        if across(own, parsed, after, work.begin):
            raise SyncError("SYNC-014", replace(where, table=str(min(copied or own))), cause=parsed.text[:500])
        if parsed.kind.on_schema and (kept := self._kept_by_copy(parsed.schema, after, work.begin)):
            return self._without(parsed, kept)
        online = self.rules.online.changes(parsed, self.rules.allows)
        if unlocked:
            self._refuse_during_dump(parsed, where)
        if self._without_effect(parsed, work.begin):
            return RoutedStatement()
        found = pieces(parsed, self._with_filter(), self.tracker.get)
        found = tuple(one for one in found if copied.isdisjoint(one.ddl.tables))
        if parsed.kind is StatementKind.DROP_TABLE and not work.statement.query.foreign_key_checks:
            self._refuse_swap(parsed, found)
        return RoutedStatement(found, online)

    def crossing(self, work: LoggedDdl, after: Mapping[TableName, Position], known: Collection[TableName]) -> Crossing:
        """Return what a statement means for a copy: whether it lies between snapshots, or names a table not in `known`.

        `after` has the positions of the snapshots. A statement that can't be read means nothing.
        """
        parsed = self._parsed(work)
        if parsed is None or isinstance(parsed, Skipped):
            return Crossing()  # sync reports the error, or an operator leaves the statement out
        names = concerned(parsed, self.rules.online, self.rules.allows)
        model = {parsed.like} if parsed.like is not None and self.rules.allows(parsed.like) else set()
        meets = unlisted(parsed, names | model, known) or across(names, parsed, after, work.begin)
        return Crossing(names, names | model if meets else frozenset())

    def altering(self, work: LoggedDdl) -> frozenset[TableName] | None:
        """Return the followed tables that a statement may give another structure; None where it can't be read."""
        parsed = self._parsed(work)
        if parsed is None:
            return None
        if isinstance(parsed, Skipped) or parsed.kind is StatementKind.TRUNCATE_TABLE:
            return frozenset()
        return concerned(parsed, self.rules.online, self.rules.allows)

    def _parsed(self, work: LoggedDdl) -> Ddl | Skipped | None:
        where = Where(source=self.source, position=str(work.begin))
        try:
            return classify(work.statement.sql, logged_context(work.statement, self.traits, where))
        except DdlError:
            return None

    def _without_temporary(self, parsed: Ddl) -> Ddl | None:
        """Return a RENAME TABLE without the temporary tables in it, None if it has no others.

        MariaDB logs it as that of real tables. A real table of the same name, which the temporary one hid from its
        session, still has its name then, and was not touched since.
        """
        pairs = list(zip(parsed.tables[::2], parsed.tables[1::2], strict=True))
        real: list[tuple[TableName, TableName]] = []
        temporary: set[TableName] = set()
        for at, (old, new) in enumerate(pairs):
            hidden = old not in {made for _, made in pairs[:at]} and self.tracker.knows(old) and self.rules.allows(old)
            if old in temporary:
                temporary.remove(old)
                temporary.add(new)
            elif hidden and self.traits.keeps_name(old, _last_name(new, pairs[at + 1 :]), parsed.context.timestamp):
                temporary.add(new)
                told = "left out: it renamed a temporary table, and the source still has the real one of that name"
                words = {"table": str(old), "statement": parsed.text[:500], "position": parsed.context.where.position}
                logger("sync", source=self.source).warning(told, **words)
            else:
                real.append((old, new))
        return _of_pairs(parsed, real)

    def _without_views(self, parsed: Ddl) -> Ddl | None:
        """Return a RENAME TABLE without views and sequences, None if nothing else is in it.

        The log does not tell what it renames. A name without a table at either end is one of these if the source now
        has such a thing under its old or new name.
        """
        pairs = list(zip(parsed.tables[::2], parsed.tables[1::2], strict=True))
        real: list[tuple[TableName, TableName]] = []
        for at, (old, new) in enumerate(pairs):
            if (
                self.tracker.knows(old)
                or old in {made for _, made in real}
                or not self._is_view(old, new, pairs[at + 1 :])
            ):
                real.append((old, new))
                continue
            told = "left out: it renamed a view or a sequence, which is not migrated"
            words = {"table": str(old), "statement": parsed.text[:500], "position": parsed.context.where.position}
            logger("sync", source=self.source).info(told, **words)
        return _of_pairs(parsed, real)

    def _is_view(self, old: TableName, new: TableName, later: Sequence[tuple[TableName, TableName]]) -> bool:
        if not (self.rules.allows(old) or self.rules.allows(new)):
            return False
        kinds = {self.traits.kind_of(name) for name in (old, _last_name(new, later))}
        return not kinds.isdisjoint({"VIEW", "SEQUENCE"}) and self.tracker.get(old) is None

    def _kept_by_copy(self, schema: str, after: Mapping[TableName, Position], at: Position) -> frozenset[TableName]:
        """Return the tables of a schema that were copied after `at`: the target's schema is kept for them."""
        return frozenset(
            name for name in self.tracker.names if name.table and name.schema == schema and after.get(name, at) > at
        )

    def _without(self, parsed: Ddl, kept: frozenset[TableName]) -> RoutedStatement:
        """Handle a statement on a schema with tables that were copied later: DROP only the others, if it drops."""
        judged = judge_and_log(self.events, parsed, parsed, self.tracker.get)
        if judged is not None or not parsed.drops_schema:
            return RoutedStatement()
        names = sorted(name for name in self.tracker.names if name.table and name.schema == parsed.schema)
        dropped = [classify(f"DROP TABLE {name.quoted}", parsed.context) for name in names if name not in kept]
        found = (
            piece for one in dropped if isinstance(one, Ddl) for piece in pieces(one, self.rules, self.tracker.get)
        )
        return RoutedStatement(tuple(found))

    def _met_in_copy(self, parsed: Ddl) -> tuple[AlterOperation, ...]:
        found = pieces(parsed, self._with_filter(), self.tracker.get)
        return tuple(replace(one, tracked=False) for one in found if any(part.kind in COORDINATED for part in one.run))

    def _with_filter(self) -> StatementRules:
        return replace(self.rules, judge=partial(judge_and_log, self.events))

    def _refuse_swap(self, ddl: Ddl, found: Sequence[AlterOperation]) -> None:
        """Raise DdlError DDL-042 for the DROP TABLE of pt-online-schema-change's `drop_swap`.

        The tool drops the table, and then gives its copy the table's name. On the target nothing may be dropped, as the
        rows of the copy are not there. Whoever drops a table for good may look the same, so a human decides.
        """
        for name in (name for piece in found for part in piece.run for name in part.tables):
            ghost = self.rules.online.ghost_of(name)
            if ghost is not None and ghost not in ddl.tables:
                values = {"table": str(name), "ghost": str(ghost), "statement": ddl.text}
                raise DdlError("DDL-042", replace(ddl.context.where, table=str(name)), values=values)

    def _refuse_during_dump(self, ddl: Ddl, where: Where) -> None:
        if ddl.kind in (StatementKind.TRUNCATE_TABLE, StatementKind.TEMPORARY_TABLE) or self.tracker.without_effect(
            ddl
        ):
            return
        for name in ddl.tables:
            if self.tracker.knows(name) and self.rules.allows(name):
                raise SyncError("SYNC-047", replace(where, table=str(name)), cause=ddl.text[:500])


def made_if_missing(ddl: Ddl) -> TableName | None:
    """Return the table, or the schema's row, that a CREATE IF NOT EXISTS makes; None for any other statement."""
    if not ddl.if_not_exists or ddl.kind not in (StatementKind.CREATE_TABLE, StatementKind.CREATE_DATABASE):
        return None
    return schema_row(ddl.schema) if ddl.kind.on_schema else ddl.tables[0]


def without_entering(parsed: Ddl, rules: StatementRules) -> tuple[Ddl | None, frozenset[TableName]]:
    """Return a RENAME without tables whose first name is excluded, None if it has no others; and their followed names.

    Helper tables of online DDL have a meaning of their own.
    """
    kept: list[tuple[TableName, TableName]] = []
    known, entering = set[TableName](), set[TableName]()
    for old, new in renames(parsed):
        shut = not rules.allows(old) and rules.online.tables.is_real(old)
        if old in entering or (shut and old not in known):
            entering = entering - {old} | {new}
        else:
            known = known - {old} | {new}
            kept.append((old, new))
    entered = frozenset(filter(rules.allows, entering))
    return _of_pairs(parsed, kept), entered


def _of_pairs(parsed: Ddl, left: Sequence[tuple[TableName, TableName]]) -> Ddl | None:
    """Return a RENAME TABLE with only these of its pairs; None without any."""
    if 2 * len(left) == len(parsed.tables):
        return parsed
    text = "RENAME TABLE " + ", ".join(f"{old.quoted} TO {new.quoted}" for old, new in left)
    return classify_ddl(text, parsed.context) if left else None


def _last_name(name: TableName, later: Sequence[tuple[TableName, TableName]]) -> TableName:
    """Return the name that a table has after the later renames of a statement."""
    for old, new in later:
        name = new if old == name else name
    return name
