"""Checks of the accounts' privileges. Each finding has the GRANT that fixes it, for exactly what the task needs."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from unshard.checks.facts import WRITES_ANYWAY, End, SourceFacts, TaskFacts
from unshard.checks.result import Finding, Severity
from unshard.dump.plan import resolve
from unshard.model.table import TableName
from unshard.mysql.flavour import Flavour
from unshard.mysql.grants import schema_clause
from unshard.source.requirements import replication_privileges, status_privilege

_KEPT_WITH = ("SELECT", "INSERT", "UPDATE", "DELETE")
"""Privileges without which no record of a task can be written."""

TARGET_PRIVILEGES = ("CREATE", "SELECT", "INSERT", "UPDATE", "DELETE", "ALTER", "DROP", "INDEX", "REFERENCES")
_FOR_SESSIONS = ("SESSION_VARIABLES_ADMIN", "SYSTEM_VARIABLES_ADMIN", "SUPER")
"""Any of these lets an account change a protected variable of MySQL for its session."""

_WILD = frozenset("*?[~")
_OF_ITS_OWN = (10, 11, 0)
"""From this version on MariaDB's SUPER does not include READ_ONLY ADMIN."""


def replication_privilege(source: SourceFacts) -> Iterator[Finding]:
    """Yield a failure where the account lacks a privilege for following the binlog."""
    missing = replication_privileges(source.end.grants, source.end.server)
    if missing:
        yield _lack("fail", source.end, missing, "*.*", "to follow the binlog")


def dump_privilege(source: SourceFacts) -> Iterator[Finding]:
    """Check the privileges for a dump: SELECT on each table, and those for its lock, if it takes one.

    On MariaDB with only InnoDB tables it takes none, unless snapshots don't tell their position (`tells_positions`).
    """
    end, grants = source.end, source.end.grants
    status = status_privilege(grants, end.server)
    if status and not source.follows:
        yield _lack("fail", end, status, "*.*", "to know where the binlog is as the dump begins")
    mariadb = end.server.flavour is Flavour.MARIADB
    tells = mariadb and end.settings.get("binlog_optimize_thread_scheduling") not in ("OFF", "0")
    flushes = grants.everywhere("RELOAD") or (not mariadb and grants.everywhere("FLUSH_TABLES"))
    wanted = source.config.dumper.consistency
    consistency = resolve(wanted, source.listed, tells_positions=tells, follows=source.follows, flushes=flushes)
    on_schemas = ("SELECT", "LOCK TABLES") if consistency == "lock" else ("SELECT",)
    unread: dict[str, list[TableName]] = {}
    for name in source.tables:
        if not grants.on_schema("SELECT", name.schema) and not grants.on_table("SELECT", name):
            unread.setdefault(name.schema, []).append(name)
    for schema, names in sorted(unread.items()):
        told = f"to read {', '.join(map(str, names[:3]))}{' …' if len(names) > 3 else ''}"
        yield _lack("fail", end, ("SELECT",), schema_clause(schema, literal=end.literal), told, on_schemas)
    if consistency == "flush" and not flushes:
        yield _lack("fail", end, ("RELOAD",), "*.*", "for FLUSH TABLES WITH READ LOCK (consistency auto or flush)")
    if consistency == "lock":
        for schema in sorted({name.schema for name in source.tables}):
            if not grants.on_schema("LOCK TABLES", schema):
                on = schema_clause(schema, literal=end.literal)
                yield _lack("fail", end, ("LOCK TABLES",), on, "for `--consistency lock`", on_schemas)
    blind = not unread and not grants.anywhere("SELECT")
    unseen = list(_unseen(source, "fail" if blind else "warn"))
    yield from unseen
    if blind and not unseen:
        yield _lack("fail", end, ("SELECT",), "*.*", "to read any table, and may see none")
    yield from _half_seen(source, unread)


def _half_seen(source: SourceFacts, unread: Collection[str]) -> Iterator[Finding]:
    """Report schemas of which the account sees only some tables: the others would be left out in silence."""
    rule, end = source.config.block_allow, source.end
    if rule is not None and rule.do_tables and not any(_WILD & set(entry.tbl_name) for entry in rule.do_tables):
        return
    for schema in sorted({name.schema for name in source.tables}):
        if schema not in unread and not end.grants.on_schema("SELECT", schema):
            seen = [str(name) for name in source.tables if name.schema == schema]
            told = f"{', '.join(seen[:3])}{' …' if len(seen) > 3 else ''}"
            on = schema_clause(schema, literal=end.literal)
            yield Finding(
                "warn",
                f"{end.account} may read single tables of schema {schema} alone ({told}); it does not see others, "
                "which are not copied if there are any",
                f"GRANT SELECT ON {on} TO {end.account}; or name each table under `do-tables`",
            )


def _unseen(source: SourceFacts, severity: Severity) -> Iterator[Finding]:
    """Report schemas that the task names and the account can't see: their tables would be left out in silence."""
    rule = source.config.block_allow
    named = [*rule.do_dbs, *(entry.db_name for entry in rule.do_tables)] if rule is not None else []
    seen = {name.schema.lower() for name in source.tables}
    for schema in dict.fromkeys(named):
        if not _WILD & set(schema) and schema.lower() not in seen:
            on = schema_clause(schema, literal=source.end.literal)
            granted = source.end.grants.on_schema("SELECT", schema)
            mend = "create it, or correct the name" if granted else f"GRANT SELECT ON {on} TO {source.end.account};"
            yield Finding(severity, f"no table of schema {schema} is there, or may be seen", mend)


def target_privilege(task: TaskFacts) -> Iterator[Finding]:
    """Check the privileges on each schema that is written to, and on the schemas whose names begin with `meta-schema`.

    A missing privilege that would stop the task at its first write is a failure, any other a warning.
    """
    end = task.target
    if end is None:
        return
    config = task.configs[0]
    meta = config.meta_schema
    routed = sorted({name.schema for source in task.sources for name in source.targets.values()} - {meta})
    checked = [(schema, schema_clause(schema, literal=end.literal), "") for schema in routed]
    stem = "*.*" if end.literal else schema_clause(meta).replace("`.*", "%`.*")
    checked += [(meta, stem, " for checkpoints"), (f"{meta}_{config.name}", stem, " for trials of statements")]
    told = set()
    for schema, on, why in checked:
        missing = tuple(name for name in TARGET_PRIVILEGES if not end.grants.on_schema(name, schema))
        if missing and on not in told:
            told.add(on)
            needed = _KEPT_WITH if schema == meta else ("INSERT",) if schema in routed else ()
            stops = not all(end.grants.within(name, schema) for name in needed)
            yield _lack("fail" if stops else "warn", end, missing, on, f"on {schema}{why}", TARGET_PRIVILEGES)
    yield from _plain_tables(task, end)


def _plain_tables(task: TaskFacts, end: End) -> Iterator[Finding]:
    """Check the privilege to create tables without a primary key on a target that would add one."""
    adds, insists = (end.settings.get(f"sql_{name}_primary_key") == "ON" for name in ("generate_invisible", "require"))
    if not adds or any(end.grants.everywhere(name) for name in _FOR_SESSIONS):
        return
    stops = not insists and any(
        source.targets[name] not in task.there and not any(index.primary for index in table.indexes)
        for source in task.sources
        if source.fresh
        for name, table in source.tables.items()
    )
    if stops or any(source.follows for source in task.sources):
        why = "to make tables and run DDL without the keys that sql_generate_invisible_primary_key = ON adds"
        yield _lack("fail" if stops else "warn", end, _FOR_SESSIONS[:1], "*.*", why)


def target_writable(task: TaskFacts) -> Iterator[Finding]:
    """Check that the server lets this account write. A replica, or a primary that was demoted, does not."""
    end = task.target
    if end is None:
        return
    for variable in _read_only(end):
        mend = f"SET GLOBAL {variable.removeprefix('super_')} = OFF;"  # turns super_read_only off too
        if variable == "tidb_restricted_read_only":  # it turns tidb_super_read_only on for good
            mend = "SET GLOBAL tidb_restricted_read_only = OFF, GLOBAL tidb_super_read_only = OFF;"
        if variable == "innodb_read_only":
            mend = "take innodb_read_only out of the server's own file and restart it"
        yield Finding(
            "fail",
            f"the target is read-only: {variable} is {end.settings[variable]}",
            f"{mend} or, where it is a replica, write the server that is its primary under `target-database:`",
        )


def _read_only(end: End) -> list[str]:
    """Return the variable that keeps this account from writing, if any."""
    if end.server.flavour is Flavour.MARIADB:
        exempt = end.settings.get("read_only") != "NO_LOCK_NO_ADMIN" and (
            end.grants.everywhere("READ_ONLY ADMIN")
            or (end.server.version < _OF_ITS_OWN and end.grants.everywhere("SUPER"))
        )
    else:
        exempt = end.grants.everywhere("SUPER") or end.grants.everywhere("CONNECTION_ADMIN")
    by_tidb = end.grants.by_name(WRITES_ANYWAY)
    exempted = {
        "innodb_read_only": False,
        "super_read_only": False,
        "read_only": exempt,
        "tidb_restricted_read_only": by_tidb,
        "tidb_super_read_only": by_tidb,
    }
    on = [name for name in exempted if end.settings.get(name, "OFF") not in ("OFF", "0")]
    return [name for name in on if not exempted[name]][:1]


def _lack(
    severity: Severity, end: End, missing: tuple[str, ...], on: str, why: str, wanted: tuple[str, ...] = ()
) -> Finding:
    """Return the finding for missing privileges.

    `wanted` are all privileges that the task needs on a schema. They are granted together, because a GRANT on exactly
    this schema takes the place of a wider one.
    """
    return Finding(
        severity,
        f"{end.account} lacks {', '.join(missing)} {why}",
        f"GRANT {', '.join(wanted or missing)} ON {on} TO {end.account};",
        self=end.account,
    )
