"""Checks of the servers: versions, the source's settings for its binlog, number of connections (`conn_number`)."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from unshard.checks.facts import End, SourceFacts, TaskFacts
from unshard.checks.result import Finding
from unshard.config.subtask import SubtaskConfig
from unshard.load.unit import CONNECTIONS_OF_A_TASK
from unshard.mysql.flavour import Flavour
from unshard.mysql.target_session import tidb_version
from unshard.mysql.tidb import OLDEST as TIDB_OLDEST

_TESTED = {Flavour.MYSQL: ((5, 6, 0), (9, 8, 0), "9.7"), Flavour.MARIADB: ((10, 2, 0), (11, 9, 0), "11.8")}
"""By flavour: the oldest version, the first version that is newer than all tests, the newest tested version."""


_SLAVE_MONITOR = (10, 5, 9)
"""From this MariaDB on, a privilege of its own shows the replication; before it, REPLICATION CLIENT does."""

_OLDEST_TARGET = {Flavour.MYSQL: ((5, 7, 9), "MySQL"), Flavour.MARIADB: ((10, 2, 7), "MariaDB")}


def version(source: SourceFacts) -> Iterator[Finding]:
    """Check the source's version.

    MariaDB is not experimental, as it is in DM: both flavours are tested as source and target.
    """
    found = source.end.server
    if "TIDB" in source.end.version.upper():
        yield Finding("warn", f"TiDB {source.end.version} has no binlog that can be followed", "copy it with mode full")
        return
    oldest, newer, tested = _TESTED[found.flavour]
    if found.version < oldest:
        wanted = ".".join(map(str, oldest))
        yield Finding(
            "warn", f"version {found.version_text} is too old, {wanted} is wanted", f"upgrade to {wanted} or later"
        )
    elif found.version >= newer:
        yield Finding(
            "warn",
            f"version {found.version_text} is newer than {tested}, the newest that was tested",
            "try the task on a copy of the server first",
        )


def target_version(task: TaskFacts) -> Iterator[Finding]:
    """Yield a failure for a target that is older than the oldest version that is supported."""
    if task.target is None:
        return
    tidb = tidb_version(task.target.version)
    if tidb is not None:
        if tidb < TIDB_OLDEST:
            oldest, own = (".".join(map(str, numbers)) for numbers in (TIDB_OLDEST, tidb))
            text = f"the target is TiDB {own}, which does not take the statements of a task: {oldest} is the oldest"
            yield Finding("fail", text, f"upgrade the cluster to {oldest} or later")
        return
    found = task.target.server
    wanted, name = _OLDEST_TARGET[found.flavour]
    if found.version < wanted:
        yield Finding(
            "fail",
            f"the target is {name} {found.version_text}: it lacks the type JSON or the long keys of the task's tables",
            f"migrate to {name} {'.'.join(map(str, wanted))} or later; a source may be older",
        )


def server_id(source: SourceFacts) -> Iterator[Finding]:
    """Yield a warning where `server_id` is not set."""
    if source.end.settings.get("server_id", "0") == "0":
        yield Finding(
            "warn",
            "server_id is not set or 0: the source turns every replica away",
            "SET GLOBAL server_id = 1; write it under [mysqld] too, a number that no other server has",
        )


def binlog_enable(source: SourceFacts) -> Iterator[Finding]:
    """Yield a failure where the source writes no binlog."""
    if source.end.settings.get("log_bin") not in ("ON", "1"):
        yield Finding(
            "fail", "log_bin is OFF, and should be ON", "write `log_bin = mysql-bin` under [mysqld] and restart it"
        )


def log_slave_updates(source: SourceFacts) -> Iterator[Finding]:
    """Check that the source logs what it applies as a replica, if it is one, whether or not it replicates now."""
    setting, primary, fault = source.replication.setting, source.replication.primary, source.replication.fault
    if primary:
        yield Finding(
            "fail",
            f"the source is a replica of {primary}, and {setting} is OFF: changes of {primary} are not in its binlog",
            f"write `{setting} = ON` under [mysqld] and restart it, or set the source file to {primary}; if it is a "
            "replica no more: STOP and RESET its replication (`RESET SLAVE ALL`, MySQL: `RESET REPLICA ALL`)",
        )
    elif fault:
        server = source.end.server
        own = server.flavour is Flavour.MARIADB and server.version >= _SLAVE_MONITOR
        yield Finding(
            "warn",
            f"{setting} is OFF, and it could not be asked whether the source is a replica, whose binlog lacks what it "
            f"receives: {fault}",
            f"GRANT {'SLAVE MONITOR' if own else 'REPLICATION CLIENT'} ON *.* TO {source.end.account};",
        )


def binlog_format(source: SourceFacts) -> Iterator[Finding]:
    """Yield a failure where the format of the binlog is not ROW."""
    form = source.end.settings.get("binlog_format", "ROW")  # a MySQL without the variable only has ROW
    if form != "ROW":
        yield Finding(
            "fail",
            f"binlog_format is {form}, and should be ROW",
            "SET GLOBAL binlog_format = 'ROW'; sessions that are open keep the old one until they reconnect",
        )


def binlog_row_image(source: SourceFacts) -> Iterator[Finding]:
    """Check for row images that lack columns. Such a binlog is followed where possible (ADR 6); DM refuses it."""
    image = source.end.settings.get("binlog_row_image", "FULL")
    if image == "FULL":
        return
    config = source.config
    whole = config.delivery == "at-least-once" or config.syncer.safe_mode or config.dumper.consistency == "none"
    refused = (
        "safe mode needs whole rows, so the task would stop"
        if whole
        else "changes are applied row by row, and a table whose target has another key, or an INSERT without a column"
        " whose default is an expression, stops the task"
    )
    yield Finding(
        "fail" if whole else "warn",
        f"binlog_row_image is {image}: {refused}",
        "SET GLOBAL binlog_row_image = 'FULL'; sessions that are open keep the old one until they reconnect",
    )


def binlog_db(source: SourceFacts) -> Iterator[Finding]:
    """Check that the binlog contains the task's schemas.

    Rows are logged by the schema of their table, not by the session's.
    """
    folds = source.end.settings.get("lower_case_table_names", "0") != "0"

    def fold(name: str) -> str:
        return name.lower() if folds else name

    needed = sorted({name.schema for name in source.tables})
    filters = source.filters
    if filters.fault:
        yield Finding(
            "warn",
            f"it could not be asked whether changes of some schemas are not in the binlog: {filters.fault}",
            "give the account REPLICATION CLIENT (MariaDB: BINLOG MONITOR), or see binlog_do_db and binlog_ignore_db "
            "in the server's own file",
        )
    logged, unlogged = set(map(fold, filters.taken)), set(map(fold, filters.left))
    missing = [name for name in needed if (logged and fold(name) not in logged) or fold(name) in unlogged]
    if missing:
        names = ", ".join(missing)
        setting = "binlog_do_db" if logged else "binlog_ignore_db"
        change = "add a binlog_do_db line for each" if logged else "take its line out"
        yield Finding(
            "fail",
            f"changes of {names} are not in the binlog: {setting} leaves them out",
            f"{change} under [mysqld] and restart the source, or leave them out of the task (`ignore-dbs`)",
        )


_LOCAL = re.compile(r"local\[(\d+|\*)(?:,\s*\d+)?\]")
_OWN_OF_A_SOURCE = 2
"""Connections besides a dump's readers: one for its lock or listing, and one of the relay."""


def dumper_connections(source: SourceFacts) -> Iterator[Finding]:
    """Check the connections of a dump: two for each of its threads.

    Needs no PROCESS privilege, as a status variable has the number of sessions.
    """
    threads = _at_most(source.config.spark.master, source.config.dumper.threads)
    yield from _too_many(source.end, 2 * threads + _OWN_OF_A_SOURCE, "dump", "fail", "`threads` under `mydumpers:`")


def loader_connections(task: TaskFacts) -> Iterator[Finding]:
    """Check the connections of a load: one for each file that is loaded at a time, and one more for each source."""
    if task.target is None or not task.loading:
        return
    need = sum(_loading(config, task.target) + 1 for config in task.loading)
    yield from _too_many(task.target, need, "load", "warn", "`pool-size` under `loaders:`")


def _loading(config: SubtaskConfig, target: End) -> int:
    """Return the number of connections over which a load writes. Into TiDB, each Spark task has several."""
    tasks = _at_most(config.spark.master, config.loader.pool_size)
    if tidb_version(target.version) is None:
        return tasks
    return min(tasks * CONNECTIONS_OF_A_TASK, max(config.loader.pool_size, tasks))


def _too_many(end: End, need: int, unit: str, worst: str, setting: str) -> Iterator[Finding]:
    limit = int(end.settings.get("max_connections", "0"))
    own = int(end.settings.get("max_user_connections", "0"))
    if own and own < need:
        yield Finding(
            "fail" if worst == "fail" else "warn",
            f"the {unit} takes {need} connections, and the account may have {own}",
            f"ALTER USER {end.account} WITH MAX_USER_CONNECTIONS {need};",
        )
    if limit and need > limit:
        yield Finding(
            "fail" if worst == "fail" else "warn",
            f"the {unit} takes {need} connections, and max_connections is {limit}",
            f"SET GLOBAL max_connections = {need + end.connected}; or lower {setting}",
        )
    elif limit and need > limit - end.connected:
        yield Finding(
            "warn",
            f"the {unit} takes {need} connections; of max_connections {limit}, {end.connected} are in use",
            f"SET GLOBAL max_connections = {need + end.connected}; or lower {setting}",
        )


def _at_most(master: str, asked: int) -> int:
    """Return how many tasks run at a time: no more than Spark has slots, if it runs on this machine."""
    local = _LOCAL.fullmatch(master)
    if local is None:
        return 1 if master == "local" else asked
    slots = (os.cpu_count() or 1) if local[1] == "*" else int(local[1])
    return min(asked, slots)
