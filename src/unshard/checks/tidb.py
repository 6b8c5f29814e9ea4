"""Checks of a TiDB target: the features of the source's tables and collations that it lacks."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace

from unshard.checks.facts import End, SourceFacts, TaskFacts
from unshard.checks.result import Finding
from unshard.ddl.evaluate import definition_of
from unshard.errors import UnshardError, some_of
from unshard.model.table import Table, TableName
from unshard.mysql.collation_weights import collation_difference
from unshard.mysql.connection import session
from unshard.mysql.structure import find_create_statement
from unshard.mysql.target_session import tidb_version
from unshard.mysql.tidb_collations import Difference, nearest, same_collation
from unshard.schema.definition import Dialect, TableDefinition
from unshard.schema.text import type_text
from unshard.schema.tidb import AS_TEXT, NotInTidbError, TidbWords, create_table, tidb_column
from unshard.schema.words import NotUnderstoodError

_NAMED = 5
_BETWEEN_VERSIONS = (7, 5, 0)
_LEAVE_OUT = "leave the table out (`ignore-tables` under `block-allow-list:`), or change that in the source"


def target_collations(task: TaskFacts) -> Iterator[Finding]:
    """Warn of a cluster whose collations all compare bytes: texts that are equal in the source are different there."""
    end = task.target
    if end is not None and "utf8mb4_general_ci" not in end.collations:
        yield Finding(
            "warn",
            "this TiDB compares texts byte by byte, whatever their collation is, so a unique key takes 'a' beside 'A',"
            " and a query for one does not find the other: it was made with"
            " `new_collations_enabled_on_first_bootstrap = false`",
            "copy into a cluster that was made with `true`, the default since TiDB 6.0; of one that is there it can't"
            " be changed",
        )


def tables(source: SourceFacts, task: TaskFacts) -> Iterator[Finding]:
    """Report columns of the tables to create that TiDB lacks, and the parts that are left out."""
    end = task.target
    if end is None:
        return
    words = _words(end, source)
    alike: dict[tuple[TableName, Finding], list[str]] = {}
    with session(source.end.endpoint, "source") as connection:
        for name, table in source.tables.items():
            target = source.targets[name]
            create_sql = None
            if target not in task.there:
                create_sql = table.create_sql or find_create_statement(connection, name)
            if create_sql is not None:
                for finding in _lacking(name, create_sql, words):
                    alike.setdefault((target, finding), []).append(str(name))
    for (_, finding), names in alike.items():  # shards mostly have the same findings
        yield replace(finding, short_error=f"table {_some(names)}: {finding.short_error}", self=names[0])


def _lacking(name: TableName, create_sql: str, words: TidbWords) -> Iterator[Finding]:
    try:
        table = definition_of(Table(name, (), create_sql=create_sql), Dialect.MARIADB)
    except (NotUnderstoodError, UnshardError) as error:
        yield Finding("fail", f"its CREATE TABLE is not understood: {error}", _LEAVE_OUT)
        return
    faults = list(_columns(table, words))
    left_out: tuple[str, ...] = ()
    if not faults:
        try:
            left_out = create_table(table, name, words, if_not_exists=False).left_out
        except NotInTidbError as error:
            faults.append(str(error))
    for fault in faults:
        yield Finding("fail", fault, _LEAVE_OUT)
    for column in table.columns:
        if (kind := AS_TEXT.get(column.type.name)) is not None:
            becomes = type_text(kind, Dialect.TIDB).upper()
            text = f"column {column.name}: TiDB has no type {column.type.name.upper()}, so it becomes {becomes}"
            yield Finding("warn", text, "nothing, if what reads the target takes the values as text")
    if left_out:
        text = f"it is created without {', '.join(left_out)}, which TiDB has not"
        yield Finding("warn", text, "nothing, if what reads the target can do without")


def _columns(table: TableDefinition, words: TidbWords) -> Iterator[str]:
    for column in table.columns:
        try:
            tidb_column(column, words)
        except NotInTidbError as error:
            yield str(error)


@dataclass(slots=True)
class _Use:
    """The columns that have one collation, by table and name: columns of unique keys, and other columns."""

    charset: str
    keyed: list[str] = field(default_factory=list)
    others: list[str] = field(default_factory=list)

    def __str__(self) -> str:
        """Name the columns of unique keys first: for those it matters which texts are equal."""
        parts = []
        if self.keyed:
            parts.append(f"in unique keys {_some(self.keyed)}")
        if self.others:
            parts.append(f"{'besides ' if self.keyed else ''}{_some(self.others)}")
        return "; ".join(parts)


def collations(source: SourceFacts, task: TaskFacts) -> Iterator[Finding]:
    """Report the collations that the target lacks, what replaces them, and which texts become equal by that."""
    end = task.target
    if end is None:
        return
    wished = source.config.collations
    for (collation, chosen), use in sorted(_uses(source, task, end).items()):
        key = f"`collations: {{{collation}: …}}` in the task file"
        by_wish = any(same_collation(collation, name) for name in wished)
        if not any(same_collation(chosen, name) for name in end.collations):
            text = f"the target has no collation {chosen}, which the task file names for {collation}"
            yield Finding("fail", text, f"name one that SHOW COLLATION lists there: {key}")
            continue
        found = collation_difference(source.end.endpoint, end.endpoint, (collation, use.charset), chosen)
        if by_wish and found is not None and not found.equal:
            continue
        why = "as `collations` says" if by_wish else "as TiDB has no such collation"
        mend = f"nothing, where no unique key holds such texts, else {key}: utf8mb4_bin makes no texts equal"
        if found is None or not found.equal:
            mend = f"nothing, or another one by {key}"
        elif source.safe_mode and use.keyed:  # REPLACE would remove a row in silence
            mend = f"{key}: utf8mb4_bin makes no texts equal; or write `tidb_collations` under `ignore-checking-items`"
            text = f"{collation} becomes {chosen}, {why}: {_effect(found)}. Safe mode ({source.safe_mode}) keeps only"
            yield Finding("fail", f"{text} the last of rows whose unique keys become equal. Columns: {use}", mend)
            continue
        yield Finding("warn", f"{collation} becomes {chosen}, {why}: {_effect(found)}. Columns: {use}", mend)


def _uses(source: SourceFacts, task: TaskFacts, end: End) -> Mapping[tuple[str, str], _Use]:
    """Return the columns whose collation differs on the target, by the source's and the target's collation."""
    found: dict[tuple[str, str], _Use] = {}
    words = _words(end, source)
    for name, table in source.tables.items():
        there = task.there.get(source.targets[name])
        own = {column.name.lower(): column.collation for column in there.columns} if there is not None else {}
        keyed = {column for key in table.unique_keys for column in key.columns}
        for column in table.columns:
            if column.collation is None or column.charset is None:
                continue
            if own.get(column.name.lower()) and column.collation in end.collations:
                continue  # the target knows both: `checks.tables` reports the difference
            chosen = own.get(column.name.lower()) or words.collation_for(column.collation)
            if not same_collation(column.collation, chosen):
                use = found.setdefault((column.collation, chosen), _Use(column.charset))
                (use.keyed if column.name in keyed else use.others).append(f"{name}.{column.name}")
    return found


def _effect(found: Difference | None) -> str:
    if found is None:
        return "which texts are equal may differ"
    parts = []
    if found.equal:
        parts.append(f"equal there and not in the source are {_some(found.equal)}")
    if found.apart:
        parts.append(f"equal in the source and not there are {_some(found.apart)}")
    return "; ".join(parts) or "the texts that were compared are equal in both or in none"


def _words(end: End, source: SourceFacts) -> TidbWords:
    return TidbWords(
        lambda collation: nearest(collation, end.collations, source.config.collations),
        tidb_version(end.version) or _BETWEEN_VERSIONS,
    )


def _some(names: list[str] | tuple[str, ...]) -> str:
    return some_of(names, _NAMED)
