"""Another file in the place of a task's or a source's: what may change, and when."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import Any

from unshard.api.status import Stage, UnitName
from unshard.api.verbs import UpdateSource, UpdateTask
from unshard.checks.result import CheckReport
from unshard.checks.run import check_moved
from unshard.config.database import DatabaseConfig
from unshard.config.document import parse_document
from unshard.config.files import parse_source, parse_task
from unshard.config.section import Section
from unshard.config.source import SourceConfig
from unshard.config.subtask import SubtaskConfig, plan_subtask
from unshard.config.task import TaskConfig
from unshard.errors import ClusterError, ConfigError
from unshard.master.answers import Answer, answer, of_source
from unshard.master.beginning import Leave, leave
from unshard.master.cluster import Cluster
from unshard.master.files import kept
from unshard.master.meanwhile import refuse_changed
from unshard.master.orders import same_login, source_config, task_config
from unshard.master.relays import known
from unshard.master.sources import Ask
from unshard.master.stages import settle
from unshard.master.state import State, SubtaskRow, TaskRow
from unshard.master.tasks import others_of, plan

NEVER = frozenset({"name", "task-mode", "meta-schema", "is-sharding", "shard-mode", "delivery", "case-sensitive"})
"""What the record in the target rests on: another task is needed for another value."""

LIVE_TASK = frozenset({"syncers", "ignore-checking-items", "clean-dump-file"})
LIVE_SOURCE = frozenset({"from", "purge", "checker"})
"""What a task that runs may be given: it ends the batch in hand and goes on with it."""

UNCHANGED = "nothing is changed: the file says what it said before"

Moved = Callable[[TaskConfig, SubtaskConfig, Sequence[SubtaskConfig]], CheckReport]

_RESTS = (Stage.PAUSED, Stage.STOPPED, Stage.FINISHED)


class Updates:
    """`ask` tries the server of a source, `moved` holds another one that it is led to against the task's others."""

    def __init__(self, cluster: Cluster, ask: Ask, leave: Leave = leave, moved: Moved = check_moved) -> None:
        self._cluster, self._ask, self._leave, self._moved = cluster, ask, leave, moved

    def task(self, request: UpdateTask) -> Answer:
        """Change a task's file. Raises ClusterError CLUSTER-017, 083, 016 with all that can't change now; ConfigError.

        A source that has been stopped may be left out: it has left the task then, and no sharding DDL waits for it.
        Rules, routes and the like want the task to be paused and past its copy; `LIVE_TASK` may change while it runs.
        A kept file that can't be read may be replaced wherever nothing of the task runs.
        """
        if request.sources:
            raise ClusterError("CLUSTER-016", cause="a task has one file for all of its sources: leave -s out")
        new = parse_task(request.task)
        state = self._cluster.state
        row = state.tasks.get(new.name)
        if row is None:
            raise ClusterError("CLUSTER-017", values={"task": new.name})
        rows = state.of_task(new.name)
        listed = {instance.source_id for instance in new.mysql_instances}
        try:
            old = task_config(row)
        except ClusterError:
            changed = set(_keys(new))
            faults = _forever(row.text, request.task) + self._at_work(rows)
            left = [name for name in _instances(row.text) if name not in listed]
        else:
            changed = _changed(old, new)
            faults = [f"{key} can't change: start another task" for key in sorted(changed & NEVER)]
            if "target-database" in changed and _place(old.target_database) != _place(new.target_database):
                faults.append("host and port of target-database can't change: start another task")
            if changed - LIVE_TASK:
                faults += _not_at_rest(rows, ", ".join(sorted(changed - LIVE_TASK - NEVER)))
            left = [one.source_id for one in old.mysql_instances if one.source_id not in listed]
        faults += [
            f"source {one.source} can't leave the task by this: stop-task -s {one.source}"
            for one in rows
            if one.source not in listed
        ]
        _refuse(faults)
        if not changed:
            with self._cluster.change() as writing:
                refuse_changed(state, writing.state, new.name)
                writing.put_task(TaskRow(new.name, kept(request.task)))  # comments may be others
            return answer(of_source(one.source, state.worker_of(one.source), UNCHANGED) for one in rows)
        configs = plan(state, new, [one.source for one in rows])
        if left and configs[0].pessimistic:
            self._leave(configs[0], left)
        with self._cluster.change() as writing:
            refuse_changed(state, writing.state, new.name, [one.source for one in rows])
            writing.put_task(TaskRow(new.name, kept(request.task)))
            renewed = _renewed(writing.state, rows)
            for one in renewed:
                writing.put_subtask(one)
        return self._settled(renewed)

    def source(self, request: UpdateSource) -> Answer:
        """Change a source's file; one that can't be read too, wherever none of its tasks runs.

        Raises ClusterError CLUSTER-008, 016, 083; ConfigError; SourceError.
        """
        new = parse_source(request.config)
        state = self._cluster.state
        known(state, new.source_id)
        row = state.sources[new.source_id]
        moves = True
        try:
            before = source_config(row)
        except ClusterError:
            changed, at_work = set(_keys(new)), self._at_work
        else:
            changed = _changed(before, new)
            moves = _place(before.database) != _place(new.database)
            what = ", ".join(sorted(changed - LIVE_SOURCE))
            at_work = partial(_not_at_rest, what=what)
        if not changed:
            with self._cluster.change() as writing:
                now = writing.state
                refuse_changed(state, now, sources=[new.source_id])
                writing.put_source(replace(now.sources[new.source_id], text=kept(request.config)))
            return answer([of_source(new.source_id, state.worker_of(new.source_id), UNCHANGED)])
        rows = state.of_source(new.source_id)
        if changed - LIVE_SOURCE:
            _refuse(at_work(rows))
        self._ask(new)
        if moves:
            _refuse(list(self._doubled(state, new, rows)))
        with self._cluster.change() as writing:
            now = writing.state
            refuse_changed(state, now, sources=[new.source_id])
            row = now.sources[new.source_id]
            relay = row.relay_stage
            if "enable-relay" in changed:
                relay = Stage.RUNNING if new.enable_relay else Stage.STOPPED
            writing.put_source(replace(row, text=kept(request.config), enabled=new.enable, relay_stage=relay))
            rows = now.of_source(new.source_id)
            if changed - LIVE_SOURCE:
                _refuse(at_work(rows))
            renewed = _renewed(writing.state, rows)
            for one in renewed:
                writing.put_subtask(one)
        if not renewed:
            with self._cluster.written():
                worker = self._cluster.state.worker_of(new.source_id)
            self._cluster.wake(filter(None, [worker]))
            return answer([of_source(new.source_id, worker)])
        return self._settled(renewed)

    def _doubled(self, state: State, new: SourceConfig, rows: Sequence[SubtaskRow]) -> Iterator[str]:
        """What a task would write twice, with the source at its new place; of one that can't be read nothing is told.

        Raises what the checks raise.
        """
        for row in rows:
            with suppress(ClusterError):
                task = task_config(state.tasks[row.task])
                config = plan_subtask(task, new)
                report = self._moved(task, config, others_of(state, task, [config]))
                for _, finding in report.findings("fail"):
                    yield f"task {row.task}: {finding.short_error}. What to do: {finding.instruction}"

    def _at_work(self, rows: Sequence[SubtaskRow]) -> list[str]:
        """Those that run on by a file which nobody can compare with a new one."""
        faults = []
        for row in rows:
            bound = self._cluster.serving(row.source)
            beat = self._cluster.liveness.beat_of(bound.worker) if bound is not None else None
            if bound is None or (beat is not None and not beat.epoch):
                continue
            brief = self._cluster.liveness.brief(bound.worker, bound.epoch, row.task)
            if (brief.stage if brief is not None else row.stage) not in _RESTS:
                faults.append(
                    f"task {row.task} on source {row.source} runs on by the file that it had, which can't be read "
                    f"any more: pause-task {row.task} -s {row.source} first"
                )
        return faults

    def _settled(self, rows: Sequence[SubtaskRow]) -> Answer:
        running = [row for row in rows if row.stage is Stage.RUNNING]
        resting = [row for row in rows if row.stage is not Stage.RUNNING]
        return answer(settle(self._cluster, running, Stage.RUNNING) + settle(self._cluster, resting, Stage.PAUSED))


def _changed(old: Section, new: Section) -> set[str]:
    """Top-level keys, as in the file, whose value is another one now."""
    names = _keys(new).items()
    return {key for key, name in names if not _same(getattr(old, name), getattr(new, name))}


def _keys(config: Section) -> dict[str, str]:
    """The top-level keys, as in the file, with the fields that hold them."""
    return {info.alias or name: name for name, info in type(config).model_fields.items()}


def _forever(kept: str, given: str) -> list[str]:
    """What may never change, by the words of two files of which the first can't be read as a task."""
    old, new = _words(kept), _words(given)
    if not old:
        return []  # not even YAML: what it said nobody knows
    places = [(key,) for key in sorted(NEVER)] + [("target-database", "host"), ("target-database", "port")]
    words = [(".".join(place), _word(old, place), _word(new, place)) for place in places]
    return [
        f"{key} can't change: the file that is kept says {before or 'nothing'}, this one {after or 'nothing'}; write "
        "it as it was, or start another task"
        for key, before, after in words
        if before != after
    ]


def _instances(kept: str) -> list[str]:
    found = _words(kept).get("mysql-instances")
    names = [_word(one, ("source-id",)) for one in found] if isinstance(found, list) else []
    return [name for name in names if name]


def _words(text: str) -> Mapping[str, Any]:
    with suppress(ConfigError):
        return parse_document(text, "").data
    return {}


def _word(form: Any, place: tuple[str, ...]) -> str:
    for key in place:
        form = form.get(key) if isinstance(form, dict) else None
    return "" if form is None else str(form)


def _same(before: Any, after: Any) -> bool:
    if isinstance(before, DatabaseConfig) and isinstance(after, DatabaseConfig):
        return same_login(before, after)
    return bool(before == after)


def _place(database: Any) -> tuple[str, int]:
    return database.host, database.port


def _not_at_rest(rows: Sequence[SubtaskRow], what: str) -> list[str]:
    faults = []
    for row in rows:
        place = f"task {row.task} on source {row.source}"
        stage = row.brief.stage if row.brief is not None else row.stage
        if row.stage is Stage.RUNNING or stage not in _RESTS:
            faults.append(f"{place} is not paused, as a change of {what} wants")
        elif row.brief is not None and row.brief.unit in (UnitName.DUMP.value, UnitName.LOAD.value):
            faults.append(f"{place} is in {row.brief.unit}: {what} can't change before it is in Sync")
    return faults


def _refuse(faults: Sequence[str]) -> None:
    if faults:
        raise ClusterError("CLUSTER-016", cause="\n       ".join(faults))


def _renewed(state: State, rows: Sequence[SubtaskRow]) -> list[SubtaskRow]:
    keys = [(row.task, row.source) for row in rows]
    return [replace(row, revision=row.newest + 1) for key in keys if (row := state.subtasks.get(key)) is not None]
