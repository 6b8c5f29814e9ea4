"""Checks of how many connections the servers bear: `conn_number`, for the dump and for the load."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator

from unshard.checks.facts import End, SourceFacts, TaskFacts
from unshard.checks.result import Finding
from unshard.config.subtask import SubtaskConfig
from unshard.load.unit import CONNECTIONS_OF_A_TASK
from unshard.mysql.tidb_version import tidb_version

_LOCAL = re.compile(r"local\[(\d+|\*)(?:,\s*\d+)?\]")
_OWN_OF_A_SOURCE = 2
"""Besides its readers a dump has one connection for its lock or listing, and the relay one."""


def dumper_connections(source: SourceFacts) -> Iterator[Finding]:
    """Each thread of a dump reads over two connections. No PROCESS is needed: the server tells the number itself."""
    threads = _at_most(source.config.spark.master, source.config.dumper.threads)
    yield from _too_many(source.end, 2 * threads + _OWN_OF_A_SOURCE, "dump", "fail", "`threads` under `mydumpers:`")


def loader_connections(task: TaskFacts) -> Iterator[Finding]:
    """A connection for each file that is loaded at once, and one more for each source."""
    if task.target is None or not task.loading:
        return
    need = sum(_loading(config, task.target) + 1 for config in task.loading)
    yield from _too_many(task.target, need, "load", "warn", "`pool-size` under `loaders:`")


def _loading(config: SubtaskConfig, target: End) -> int:
    """Connections that a load writes over: into TiDB a task of Spark has several."""
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
    """What is done at once: no more than Spark has slots, where it runs in this machine."""
    local = _LOCAL.fullmatch(master)
    if local is None:
        return 1 if master == "local" else asked
    slots = (os.cpu_count() or 1) if local[1] == "*" else int(local[1])
    return min(asked, slots)
