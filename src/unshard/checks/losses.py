"""Checks for losses and alterations of data that would happen although every statement of the task succeeds."""

from __future__ import annotations

from collections.abc import Iterator

from unshard.checks.facts import End, SourceFacts, TaskFacts
from unshard.checks.result import Finding
from unshard.checks.shards import Group
from unshard.model.table import Index, Table, TableName, quote_name
from unshard.mysql.altered_values import TargetKind, codes, documents, texts_of_documents, zeros
from unshard.mysql.flavour import Flavour
from unshard.mysql.json_numbers import MAY_LOSE

_AGAIN = "safe mode (after a kill without receipts, a lock-free dump, `safe-mode: true`) and `delivery: at-least-once`"
_FOLLOWED = {
    "stop": "a row of the binlog that holds one stops the task (SYNC-078), unless the task has `json-values: convert`",
    "convert": "so do rows of the binlog, by `json-values: convert`",
}
_NAMED = 5
_UTC = frozenset({"UTC", "ETC/UTC", "GMT", "+00:00", "-00:00", "UCT", "ZULU"})
_OF_NO_DDL = frozenset({"ONLY_FULL_GROUP_BY", "NO_ENGINE_SUBSTITUTION", "NO_AUTO_CREATE_USER", "HIGH_NOT_PRECEDENCE"})


def json_values(source: SourceFacts, task: TaskFacts) -> Iterator[Finding]:
    """Warn of JSON that holds SQL values without an equivalent in JSON text: the target stores other values."""
    if task.target is None:
        return
    for name, table in source.tables.items():
        there, kind = task.there.get(source.targets[name]), kind_of_target(source, task.target)
        found = [column.name for column in documents(table, there, kind)]
        if found:
            examined = " OR ".join(f"NOT ({_read_again(column)} <=> {quote_name(column)})" for column in found)
            yield Finding(
                "warn",
                f"JSON of {name} ({', '.join(found)}) is written as text: the copy stores a DECIMAL inside of a"
                " document as a DOUBLE, dates, times and binary values as strings;"
                f" {_FOLLOWED[source.config.json_values]}",
                f"SELECT COUNT(*) FROM {name.quoted} WHERE {examined}; at the source counts the documents whose values"
                " differ then; where that matters, take a LONGTEXT column in the target, which keeps the text",
                str(name),
                str(source.targets[name]),
            )


def texts_into_json(source: SourceFacts, task: TaskFacts) -> Iterator[Finding]:
    """Warn of text that goes into JSON, which rounds numbers with many digits."""
    if task.target is None:
        return
    kind = kind_of_target(source, task.target)
    for name, table in source.tables.items():
        found = texts_of_documents(table, task.there.get(source.targets[name]), kind)
        if found:
            examined = " OR ".join(f"{quote_name(column.name)} REGEXP '{MAY_LOSE}'" for column in found)
            yield Finding(
                "warn",
                f"text of {name} ({', '.join(column.name for column in found)}) goes into a column of JSON, which holds"
                " numbers as 64-bit integers and DOUBLE: the copy stores one with more digits rounded;"
                f" {_FOLLOWED[source.config.json_values]}",
                f"SELECT COUNT(*) FROM {name.quoted} WHERE {examined}; at the source counts the rows that may have such"
                " a number; where that matters, take a LONGTEXT column in the target, which keeps the text",
                str(name),
                str(source.targets[name]),
            )


def kind_of_target(source: SourceFacts, end: End) -> TargetKind:
    """Return the products on both ends."""
    mysql = end.server.flavour is Flavour.MYSQL
    return TargetKind(source.end.server.flavour is Flavour.MYSQL, end.is_tidb or mysql, end.is_tidb)


def _read_again(column: str) -> str:
    return f"CAST(CONVERT({quote_name(column)} USING utf8mb4) AS JSON)"


def character_codes(source: SourceFacts, task: TaskFacts) -> Iterator[Finding]:
    """Warn of character sets with two codes for one character.

    Where text is sent as Unicode and not as its bytes, the target always gets the first code.
    """
    if task.target is None:
        return
    for name, table in source.tables.items():
        there, as_text = task.there.get(source.targets[name]), source.copies and source.config.dumper.format == "sql"
        columns = codes(table, there, kind_of_target(source, task.target), as_text=as_text)
        if columns:
            examined = " OR ".join(
                f"BINARY {quote_name(column.name)} <>"
                f" BINARY CONVERT(CONVERT({quote_name(column.name)} USING utf8mb4) USING {column.charset})"
                for column in columns
            )
            told = ", ".join(f"{column.name}: {column.charset}" for column in columns)
            yield Finding(
                "warn",
                f"{name} has columns of a character set with two codes for some characters ({told}): such a character"
                " arrives under one code, the text is equal and its bytes may differ",
                f"SELECT COUNT(*) FROM {name.quoted} WHERE {examined}; at the source counts the rows whose bytes differ"
                " then; a utf8mb4 column in the target has one code for each character",
                str(name),
                str(source.targets[name]),
            )


def negative_zeros(source: SourceFacts, task: TaskFacts) -> Iterator[Finding]:
    """Warn of MySQL's FLOAT and DOUBLE columns that go into a TiDB or MariaDB: their rows have no -0."""
    if task.target is None:
        return
    kind = kind_of_target(source, task.target)
    columns = {name: [column.name for column in zeros(table, kind)] for name, table in source.tables.items()}
    found = [name for name, names in columns.items() if names]
    if not found:
        return
    first = found[0]
    examined = " OR ".join(f"({n} = 0 AND CONCAT({n}) LIKE '-%')" for n in map(quote_name, columns[first]))
    more = f" and {len(found) - _NAMED:,} more" if len(found) > _NAMED else ""
    yield Finding(
        "warn",
        "a -0 in a FLOAT or DOUBLE arrives as 0, which compares as equal: the target stores none. Tables:"
        f" {', '.join(map(str, found[:_NAMED]))}{more}",
        f"SELECT COUNT(*) FROM {first.quoted} WHERE {examined}; at the source counts such rows of the first of them;"
        " nothing, where the sign of a zero means nothing",
        str(first),
        str(source.targets[first]),
    )


def keys_of_the_target(source: SourceFacts, task: TaskFacts) -> Iterator[Finding]:
    """Warn of unique keys that only the target has.

    Safe mode writes by REPLACE, which removes another row with the same value of such a key.
    """
    for name, table in source.tables.items():
        there = task.there.get(source.targets[name])
        for key in _held_by_target_alone(table, there) if there is not None else ():
            columns = ", ".join(part or "an expression" for part in key.columns)
            change = "DROP PRIMARY KEY" if key.primary else f"DROP INDEX {quote_name(key.name)}"
            yield Finding(
                "warn",
                f"{source.targets[name]} has the unique key {key.name} ({columns}), and {name} none of these columns"
                f" alone: of two rows that share a value of it, {_AGAIN} keep the later one and remove the other",
                f"ALTER TABLE {source.targets[name].quoted} {change}; or add the key to the source's table",
                str(name),
                str(source.targets[name]),
            )


def _held_by_target_alone(table: Table, there: Table) -> list[Index]:
    """Return the unique keys of the target that no unique key of the source's table implies."""
    held = [
        {name.lower() for name in key.columns}
        for key in table.unique_keys
        if not any(key.prefixes) and all(key.columns)
    ]
    return [
        key
        for key in there.unique_keys
        if not any(
            columns <= {(name or "").lower() for name in key.columns} and not any(key.prefixes) for columns in held
        )
    ]


def rows_between_sources(task: TaskFacts, target: TableName, group: Group) -> Iterator[Finding]:
    """Warn of rows that may move between two sources.

    The sources' binlogs have no common order, so the DELETE on one source may be applied after the INSERT on the other.
    """
    sources = sorted({source.name: source for source, _ in group}.values(), key=lambda source: source.name)
    if len(sources) < 2:
        return
    names = ", ".join(source.name for source in sources)
    copying = [source for source in sources if source.copies and source.config.loader.on_duplicate != "error"]
    if copying:
        allowed = copying[0].config.loader.on_duplicate
        yield Finding(
            "warn",
            f"{target} merges tables of {names}, and `on-duplicate-logical: {allowed}` lets"
            " rows with one key pass: a row that moves from one source to another before all are in sync is lost",
            "move no rows between these sources until all are in sync; or take `on-duplicate-logical` out, which makes"
            " such a row stop the load (LOAD-005)",
            other=str(target),
        )
    again = {source.safe_mode: source.name for source in reversed(sources) if source.safe_mode}
    if again:
        why = "; ".join(f"{reason} of {name}" for reason, name in sorted(again.items()))
        asked = any(source.config.syncer.safe_mode or source.config.delivery == "at-least-once" for source in sources)
        yield Finding(
            "warn",
            f"{target} merges tables of {names}, and safe mode writes rows over others ({why}): a row that moves from"
            " one source to another is lost where its DELETE is applied behind its INSERT",
            "move no rows between these sources; or take `delivery: exactly-once` without `safe-mode`, where such a row"
            " stops the task (SYNC-003)"
            if asked
            else "move no rows between these sources until `query-status` shows no `safeMode` any more",
            other=str(target),
        )


def settings_of_shards(task: TaskFacts, target: TableName, group: Group) -> Iterator[Finding]:
    """Warn if the sources of a merged table differ in time zone or SQL mode.

    A merged DDL runs once, with the settings of one shard's session, and its effect on existing rows may depend on
    them. Settings that a session sets for itself are not seen here.
    """
    sources = sorted({source.name: source for source, _ in group if source.config.pessimistic}.items())
    for what, setting in (("time zone", _time_zone), ("SQL mode", _sql_mode)):
        found = {name: setting(source) for name, source in sources}
        if len(set(found.values())) > 1:
            told = "; ".join(f"{name}: {value or 'empty'}" for name, value in found.items())
            variable = "time_zone" if setting is _time_zone else "sql_mode"
            yield Finding(
                "warn",
                f"{target} merges tables of sources with another {what} each ({told}): a DDL that depends on it, such"
                " as a new TIMESTAMP column with a constant default, gives all old rows the values of one of them",
                f"SET GLOBAL {variable} to one value on these sources, or set it in the sessions that run such DDL",
                other=str(target),
            )


def _time_zone(source: SourceFacts) -> str:
    settings = source.end.settings
    zone = settings.get("time_zone", "")
    zone = settings.get("system_time_zone", "") if zone == "SYSTEM" else zone
    return "+00:00" if zone in _UTC else zone


def _sql_mode(source: SourceFacts) -> str:
    """Return the SQL mode without the parts on which no DDL depends."""
    modes = source.end.settings.get("sql_mode", "").split(",")
    return ",".join(sorted(mode for mode in modes if mode and mode not in _OF_NO_DDL))
