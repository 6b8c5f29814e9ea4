"""The routes page of a task: the diagram, the tables behind each arrow, and the rules that decide about one table.

The names of the tables are read from the sources from time to time, once for all browsers.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from threading import Event, Lock, Thread
from typing import Any

from unshard.config.subtask import SubtaskConfig
from unshard.errors import ClusterError, ConfigError, UnshardError
from unshard.explain.finding import Explained, table_name
from unshard.explain.table import explain_table
from unshard.log import logger
from unshard.master.orders import subtask_config
from unshard.master.service import Master
from unshard.model.table import TableName
from unshard.mysql.connection import LOOK_SECONDS, session
from unshard.mysql.endpoint import to_endpoint
from unshard.mysql.structure import table_names
from unshard.transform.source_rules import SourceRules
from unshard.web.page.routes import (
    WIDTH,
    RoutedTable,
    RoutePicture,
    chosen_tables,
    grouped,
    route_picture,
    routed_tables,
)

KEPT_SECONDS = 600.0
AGAIN_SECONDS = 10.0
"""So often somebody may ask for the names again by hand."""
_FIRST_WAIT_SECONDS = 0.03
_ASKED_AT_ONCE = 16
_KEYS = ("origin", "rule", "group")
MOST_TASKS = 20
"""So many tasks are kept that somebody has looked at."""


@dataclass(frozen=True, slots=True)
class TaskRoutes:
    """The routes of a task, with the tables that its sources have at `at` (unix time).

    `silent`: the sources that did not answer, with the reason.
    """

    at: float
    tables: tuple[RoutedTable, ...]
    silent: Mapping[str, str]
    picture: RoutePicture
    made_of: object = field(repr=False)


def names_now(config: SubtaskConfig) -> Sequence[TableName]:
    """Return the tables that the source has now. Raises SourceError."""
    with session(to_endpoint(config.source.database), "source", patience_seconds=LOOK_SECONDS) as connection:
        return table_names(connection)


class RouteReader:
    """The reader of tasks' routes, which reads the names of the tables from the sources. Any thread may call it.

    `changed` is called when there is a new reading, for which a page may be waiting.
    """

    def __init__(self, master: Master, changed: Callable[[], None]) -> None:
        self._master, self._changed = master, changed
        self.names_of: Callable[[SubtaskConfig], Sequence[TableName]] = names_now
        self._found: dict[str, TaskRoutes] = {}
        self._reading: dict[str, Event] = {}
        self._lock = Lock()

    def of(self, task: str, *, again: bool = False) -> TaskRoutes | None:
        """Return the routes of a task; None while its sources are asked for the first time.

        An old reading is returned while a new one is under way. `again`: a user asks for a new one now.
        """
        found, age = self._found.get(task), KEPT_SECONDS
        if found is not None:
            age = time.time() - found.at
            if found.made_of == self._texts(task) and age < (AGAIN_SECONDS if again else KEPT_SECONDS):
                return found
        with self._lock:
            ended = self._reading.get(task)
            if ended is None:
                ended = self._reading[task] = Event()
                Thread(target=self._read, args=(task, ended), name=f"routes {task}", daemon=True).start()
        ended.wait(_FIRST_WAIT_SECONDS)
        return self._found.get(task)

    def rules(self, task: str, source: str) -> tuple[SourceRules, SubtaskConfig]:
        """Return the rules of one source. Raises ClusterError CLUSTER-017, 091."""
        row = self._master.cluster.state.subtasks.get((task, source))
        if row is None:
            raise ClusterError("CLUSTER-017", values={"task": task})
        config = subtask_config(self._master.cluster.state, row)
        return SourceRules.of(config), config

    def _texts(self, task: str) -> object:
        state = self._master.cluster.state
        rows = sorted(row.source for row in state.of_task(task))
        return state.tasks.get(task), tuple(state.sources.get(name) for name in rows)

    def _read(self, task: str, ended: Event) -> None:
        try:
            made_of = self._texts(task)
            sources = [row.source for row in self._master.cluster.state.of_task(task)]
            with ThreadPoolExecutor(_ASKED_AT_ONCE) as pool:
                answers = dict(zip(sources, pool.map(lambda source: self._source(task, source), sources), strict=True))
            tables = grouped([one for told in answers.values() if not isinstance(told, str) for one in told])
            silent = {source: told for source, told in answers.items() if isinstance(told, str)}
            found = TaskRoutes(time.time(), tuple(tables), silent, route_picture(tables), made_of)
            known = {**self._found, task: found}
            oldest = sorted(known, key=lambda name: known[name].at)
            self._found = {name: known[name] for name in oldest[-MOST_TASKS:]}
        finally:
            with self._lock:
                del self._reading[task]
            ended.set()
            self._changed()

    def _source(self, task: str, source: str) -> list[RoutedTable] | str:
        """Return the tables that the source has now, with the result of the rules.

        Or the reason why it did not answer.
        """
        try:
            state = self._master.cluster.state
            config = subtask_config(state, state.subtasks[task, source])
            return routed_tables(SourceRules.of(config), self.names_of(config))
        except UnshardError as error:
            return str(error)
        except KeyError:
            return "the task does not run on it any more"
        except Exception as error:  # noqa: BLE001 - the page shows that it is blind
            logger("page").error("routes not read", exc_info=True, sampled=True)
            return f"a bug: {type(error).__name__}; the log of the process tells more"


def route_values(reader: RouteReader, task: str, query: Mapping[str, str]) -> dict[str, Any]:
    """Return the template's values; `page` is cut by the caller from `found`."""
    routes = reader.of(task)
    chosen = {key: query.get(key, "")[:1000] for key in _KEYS}
    words = query.get("q", "")[:200]
    found = []
    if routes is not None and (words or any(chosen.values())):
        found = [
            one
            for one in chosen_tables(routes.tables, *(chosen[key] for key in _KEYS))
            if words.lower() in str(one.name).lower() or words.lower() in one.target.lower()
        ]
    source, table = query.get("source", "")[:200], query.get("table", "")[:1000]
    explained, refused = None, ""
    if source and table:
        try:
            explained = explanation(reader, task, source, table)
        except ConfigError as error:
            refused = str(error)
    return {
        "routes": routes, "chosen": chosen, "q": words, "found": found, "width": WIDTH, "source": source,
        "table": table, "explained": explained, "refused": refused,
    }  # fmt: skip


def explanation(reader: RouteReader, task: str, source: str, table: str) -> Explained:
    """Return the answer of `unshard explain` for a table, without a look at either end.

    Raises ConfigError CONFIG-025, ClusterError CLUSTER-017.
    """
    rules, config = reader.rules(task, source)
    return explain_table(config, rules, table_name(table), None)
