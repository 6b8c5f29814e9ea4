"""Checks of the tables themselves: keys, foreign keys, leftovers of online schema changes, names, triggers."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

from unshard.checks.differences import differences, unfilled
from unshard.checks.facts import SourceFacts, TaskFacts
from unshard.checks.result import Finding, Severity
from unshard.ddl.backfill import computed_from
from unshard.errors import ConfigError, Where
from unshard.load.checkpoint import LoadTables
from unshard.model.table import Table, TableName, quote_name
from unshard.mysql.connection import session
from unshard.mysql.defaults import column_lines
from unshard.mysql.endpoint import to_endpoint
from unshard.mysql.structure import find_create_statement
from unshard.target.filled import FilledTables
from unshard.transform.column_mapper import ColumnMapper
from unshard.transform.column_mapping import ColumnMapping
from unshard.transform.extract import constants
from unshard.transform.online_tables import OnlineTables

_ROW_ID = "unshard_row_id"


def table_schema(source: SourceFacts, task: TaskFacts) -> Iterator[Finding]:
    """Check each table, and compare it with the table that the target already has under its name.

    Shards of a merged table are not compared by their keys, which have to differ.
    """
    checked = source.config.target.checks_foreign_keys
    merged = task.merged
    mapper = ColumnMapper(source.config.column_mappings, source.config.case_sensitive)
    told: set[TableName] = set()
    for name, table in source.tables.items():
        if table.foreign_keys:
            yield from _foreign_keys(source, name, checked=checked)
        if not table.identity:
            yield _keyless("warn", table)
        if any(column.generated for column in table.columns) and (mapping := mapper.mapping_for(name)) is not None:
            yield from _generated_from_mapped(source, table, mapping)
        target = source.targets[name]
        there = task.there.get(target)
        if there is None and target not in told and source.extracted[name] and task.target is not None:
            told.add(target)
            yield from _unfilled(source, table, target)
        if there is not None:
            yield from differences(source, task, table, there, merged=target in merged)


def _foreign_keys(source: SourceFacts, name: TableName, *, checked: bool) -> Iterator[Finding]:
    """Check that row changes by a foreign key itself (CASCADE, SET NULL) are made exactly once in the target."""
    check = "set `session: {foreign_key_checks: 1}` under `target-database:` in the task file"
    if name not in source.cascading:
        if not checked:
            yield Finding("warn", f"table {name} has a foreign key: rows are written unchecked", check, self=str(name))
    elif source.logs_cascades and checked:
        text = f"table {name}: what its foreign key changes is in the source's binlog, and the target would do it again"
        yield Finding("fail", text, "take `foreign_key_checks` out of `session` in the task file", self=str(name))
    elif not source.logs_cascades and not checked:
        text = f"table {name}: what its foreign key changes (ON ... CASCADE, SET NULL) is not in the source's binlog"
        yield Finding("fail", f"{text}, and a target that checks no foreign keys does not do it", check, self=str(name))


def _generated_from_mapped(source: SourceFacts, table: Table, mapping: ColumnMapping) -> Iterator[Finding]:
    """Warn of columns that the target computes from other values than the source does."""
    with session(source.end.endpoint, "source") as connection:
        lines = column_lines(table.create_sql or find_create_statement(connection, table.name) or "")
    unlike = computed_from(lines, frozenset({mapping.target_column.lower()}))
    if unlike:
        names = ", ".join(column.name for column in table.columns if column.name.lower() in unlike)
        text = (
            f"table {table.name}: column mapping {mapping.rule} writes {mapping.target_column}, and the target computes"
        )
        yield Finding(
            "warn",
            f"{text} {names} from that: its values are not the source's",
            "nothing, if that is meant; else make it a plain column of the source, which is migrated as it is",
            self=str(table.name),
        )


def rows_in_target(task: TaskFacts) -> tuple[Finding, ...]:
    """Raise LoadError LOAD-025 or LOAD-026 for rows in target tables that would make the load fail after the dump."""
    loading = {config.source_id for config in task.loading}
    for source in task.sources:
        if source.name not in loading:
            continue
        config, meta = source.config, (source.config.meta_schema, source.config.name)
        with session(to_endpoint(config.target), "target") as connection:
            FilledTables(*meta).check(
                connection,
                source.name,
                source.targets.values(),
                merges=config.loader.incremental_import,
                adopts=LoadTables(*meta, source.name).begun(connection, any_source=True) != "",
            )
    return ()


def _unfilled(source: SourceFacts, table: Table, target: TableName) -> Iterator[Finding]:
    """Report a missing target table with columns that a route fills.

    The user creates it, by the statements in the finding.
    """
    with session(source.end.endpoint, "source") as connection:
        create_sql = table.create_sql or find_create_statement(connection, table.name)
    if create_sql is None:
        return
    whole = replace(table, create_sql=create_sql)
    try:
        constants(source.extracted[table.name], whole, target, None, Where(source.name, str(table.name)))
    except ConfigError as error:
        yield unfilled(error, table, target)


def primary_key(source: SourceFacts) -> Iterator[Finding]:
    """Yield a failure for each table without a primary key."""
    for table in source.tables.values():
        if not any(index.primary for index in table.indexes):
            yield _keyless("fail", table)


def _keyless(severity: Severity, table: Table) -> Finding:
    counter = next((column.name for column in table.columns if column.auto_increment), None)
    if counter is not None:
        change = f"ADD PRIMARY KEY ({quote_name(counter)})"
    else:
        change = f"ADD COLUMN {_ROW_ID} BIGINT UNSIGNED NOT NULL AUTO_INCREMENT INVISIBLE PRIMARY KEY"
    lack = "primary key" if severity == "fail" else "primary key, and no unique key of NOT NULL columns"
    slow = "" if severity == "fail" else ": its changes are applied in order by one connection"
    return Finding(
        severity,
        f"table {table.name} has no {lack}{slow}",
        f"ALTER TABLE {table.name.quoted} {change};",
        self=str(table.name),
    )


def online_ddl(source: SourceFacts, patterns: tuple[str, ...], handled: bool) -> Iterator[Finding]:
    """Report ghost tables of gh-ost and pt-osc. Without `online-ddl` they are copied like any other table.

    A task that is resumed has followed the online DDL from its beginning and has its statements on record, so it is not
    checked.
    """
    if handled and not source.fresh:
        return
    unhandled = OnlineTables.compile(patterns, ())
    ghosts = source.ghosts if handled else [name for name in source.tables if not unhandled.is_real(name)]
    for name in ghosts:
        yield Finding(
            "fail" if handled else "warn",
            f"table {name} is the shadow table of an online schema change that has not ended",
            f"DROP TABLE {name.quoted}; if nobody works on it any more, else wait until the change has ended",
            self=str(name),
        )


def same_but_for_case(task: TaskFacts) -> Iterator[Finding]:
    """Report target names that differ only in case.

    They are one table if the target ignores case (DM's error 26001), otherwise two.
    """
    names: dict[str, set[TableName]] = {}
    for source in task.sources:
        for target in source.targets.values():
            names.setdefault(str(target).lower(), set()).add(target)
    folds = task.target is not None and task.target.settings.get("lower_case_table_names", "0") != "0"
    for targets in names.values():
        if len(targets) > 1:
            shown = ", ".join(map(str, sorted(targets)))
            what = "is one table there" if folds else "are two tables there, which is easily mistaken"
            yield Finding(
                "fail" if folds else "warn",
                f"same table name in case-insensitive [{shown}]: it {what}" if folds else f"[{shown}] {what}",
                "route them to one name, or to names that differ: `target-table` under `routes:`; case counts in a "
                "pattern such as `~^(?-i:NAME)$`",
            )


def target_triggers(task: TaskFacts) -> Iterator[Finding]:
    """Report triggers on the target's tables.

    A replica's writes fire no triggers, but ours do. A trigger that may change or duplicate rows of the task is a
    failure.
    """
    exactly_once = task.configs[0].delivery == "exactly-once"
    written = {target for source in task.sources for target in source.targets.values()}
    for trigger in task.triggers:
        does = trigger.does(written)
        again = f"{does}: what the source's own did is in its binlog" if does else "runs for each row that is written"
        yield Finding(
            "fail" if does and exactly_once else "warn",
            f"table {trigger.table} of the target has trigger {trigger.name.table} "
            f"({trigger.timing} {trigger.event}), which {again}",
            f"DROP TRIGGER {trigger.name.quoted}; and make it again when the task is done, or, if it is to run, write "
            "`target_triggers` under `ignore-checking-items`",
            self=str(trigger.table),
        )
