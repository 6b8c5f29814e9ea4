"""Replaces the file of a task or a source: what may change, and when."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from unshard.api.status import Stage, UnitName
from unshard.api.verbs import Answer, UpdateSource, UpdateTask, answer, of_source
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
from unshard.master.beginning import Leave, leave
from unshard.master.cluster import Cluster
from unshard.master.orders import same_login, source_config, task_config
from unshard.master.passwords import kept, with_kept_password
from unshard.master.settle import settle
from unshard.master.sources import Ask
from unshard.master.state import State, SubtaskRow, TaskRow, known, refuse_changed
from unshard.master.tasks import others_of, plan

NEVER = frozenset({"name", "task-mode", "meta-schema", "is-sharding", "shard-mode", "delivery", "case-sensitive"})
"""Keys on which the record in the target depends: another value needs another task."""

LIVE_TASK = frozenset({"syncers", "ignore-checking-items", "clean-dump-file"})
LIVE_SOURCE = frozenset({"from", "purge", "checker"})
"""Keys that may change while a task runs: it ends its present batch and goes on with the new values.

A dump or a load that has no use for what changes (`SubtaskConfig.of_copy`) is not broken off.
"""

UNCHANGED = "nothing is changed: the file says what it said before"

Moved = Callable[[TaskConfig, SubtaskConfig, Sequence[SubtaskConfig]], CheckReport]

_RESTS = (Stage.PAUSED, Stage.STOPPED, Stage.FINISHED)


@dataclass(frozen=True, slots=True)
class TaskDraft:
    """A changed task file before it is applied.

    `faults` are the reasons why it can't be applied now, each with what to do.
    """

    text: str = field(repr=False)
    changed: tuple[str, ...] = ()
    faults: tuple[str, ...] = ()

    @property
    def at_rest(self) -> tuple[str, ...]:
        """The changed keys that want the task to be paused and past its copy."""
        return tuple(key for key in self.changed if key not in LIVE_TASK and key not in NEVER)


class Updates:
    """The verbs that replace the file of a task or a source.

    `ask` tries to connect to the server of a source; `leave` removes sources from a task's sharding DDL; `moved` checks
    another server of a source against the task's other sources.
    """

    def __init__(self, cluster: Cluster, ask: Ask, leave: Leave = leave, moved: Moved = check_moved) -> None:
        self._cluster, self._ask, self._leave, self._moved = cluster, ask, leave, moved

    def task(self, request: UpdateTask) -> Answer:
        """Change a task's file.

        Raises ClusterError CLUSTER-017, 083, 100, 016 with all that can't change now; ConfigError.

        A source that has been stopped may be left out: it then leaves the task, and no sharding DDL waits for it. To
        change rules, routes and the like the task must be paused and past its copy; `LIVE_TASK` may change while it
        runs. A stored file that can't be read may be replaced wherever nothing of the task runs.
        """
        if request.sources:
            raise ClusterError("CLUSTER-016", cause="a task has one file for all of its sources: leave -s out")
        new = parse_task(request.task)
        permit = self._cluster.permit()
        state = self._cluster.state
        row = state.tasks.get(new.name)
        if row is None:
            raise ClusterError("CLUSTER-017", values={"task": new.name})
        rows = state.of_task(new.name)
        self._cluster.hear([one.source for one in rows])
        changed, faults, left = self._judged(row, new, request.task, rows)
        _refuse(faults)
        if not changed:
            with self._cluster.change() as writing:
                refuse_changed(state, writing.state, new.name)
                writing.put_task(TaskRow(new.name, kept(request.task)))  # its comments may differ
            return answer(of_source(one.source, state.worker_of(one.source), UNCHANGED) for one in rows)
        configs = plan(state, new, [one.source for one in rows])
        if left and configs[0].pessimistic:
            self._leave(configs[0], left, permit)
        with self._cluster.change() as writing:
            refuse_changed(state, writing.state, new.name, [one.source for one in rows])
            writing.put_task(TaskRow(new.name, kept(request.task)))
            renewed = _renewed(writing.state, rows)
            for one in renewed:
                writing.put_subtask(one)
        return self._settled(renewed)

    def draft(self, name: str, text: str) -> TaskDraft:
        """Return the result that `task` would have for a text that was shown with `******`; nothing is changed.

        Raises ClusterError CLUSTER-017, CLUSTER-016 where a secret has to be written again, ConfigError.
        """
        state = self._cluster.state
        row = state.tasks.get(name)
        if row is None:
            raise ClusterError("CLUSTER-017", values={"task": name})
        whole = with_kept_password(text, row.text)
        new = parse_task(whole)
        if new.name != name:
            raise ClusterError("CLUSTER-016", cause=f"the draft is of task {new.name}: its name can't change")
        changed, faults, _ = self._judged(row, new, whole, state.of_task(name))
        return TaskDraft(whole, tuple(sorted(changed)), tuple(faults))

    def _judged(
        self, row: TaskRow, new: TaskConfig, text: str, rows: Sequence[SubtaskRow]
    ) -> tuple[set[str], list[str], list[str]]:
        """Return the top-level keys that change, the faults that forbid it, and the sources that leave the task."""
        listed = {instance.source_id for instance in new.mysql_instances}
        try:
            old = task_config(row)
        except ClusterError:
            changed = set(_keys(new))
            faults = _forever(row.text, text) + self._at_work(rows)
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
        return changed, faults, left

    def source(self, request: UpdateSource) -> Answer:
        """Change a source's file. One that can't be read may be replaced too, wherever none of its tasks runs.

        Raises ClusterError CLUSTER-008, 016, 083, 099; ConfigError; SourceError.
        """
        new = parse_source(request.config)
        state = self._cluster.state
        known(state, new.source_id)
        self._cluster.hear([new.source_id])
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
        """Yield the faults of tasks that would write rows twice with the source at its new address.

        Nothing for an unreadable task. Raises what the checks raise.
        """
        for row in rows:
            with suppress(ClusterError):
                task = task_config(state.tasks[row.task])
                config = plan_subtask(task, new)
                report = self._moved(task, config, others_of(state, task, [config]))
                for _, finding in report.findings("fail"):
                    yield f"task {row.task}: {finding.short_error}. What to do: {finding.instruction}"

    def _at_work(self, rows: Sequence[SubtaskRow]) -> list[str]:
        """Return the faults of subtasks that still run by a file which can't be compared with a new one."""
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
    """Return the top-level keys, as in the file, whose value differs."""
    names = _keys(new).items()
    return {key for key, name in names if not _same(getattr(old, name), getattr(new, name))}


def _keys(config: Section) -> dict[str, str]:
    """Return the top-level keys, as in the file, with the fields that hold them."""
    return {info.alias or name: name for name, info in type(config).model_fields.items()}


def _forever(kept: str, given: str) -> list[str]:
    """Return the faults of keys that may never change, from the raw text of two files; the first is no valid task."""
    old, new = _words(kept), _words(given)
    if not old:
        return []  # not even YAML: nobody knows what it said
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
