"""Tasks: start, stop, pause, resume."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from secrets import token_hex
from threading import Lock

from unshard.api.status import Stage
from unshard.api.verbs import Answer, CheckTask, ResumeTask, StartTask, TaskRequest, answer, plain
from unshard.checks.result import CheckReport
from unshard.checks.run import check_task, opt_in_names, require
from unshard.config.files import parse_task
from unshard.config.subtask import SubtaskConfig, plan_subtasks
from unshard.config.task import TaskConfig
from unshard.errors import CheckError, ClusterError, ConfigError, Where
from unshard.master.beginning import AtTime, Forget, Reset, TimedStart, at_time, forget, reset, starts_of, with_starts
from unshard.master.cluster import Cluster
from unshard.master.orders import attempt_name, same_login, source_config, subtask_config, task_config
from unshard.master.passwords import kept
from unshard.master.settle import settle
from unshard.master.state import State, SubtaskRow, TaskRow, refuse_changed
from unshard.master.store import Writing

Check = Callable[[TaskConfig, Sequence[SubtaskConfig], Collection[str], Sequence[SubtaskConfig]], CheckReport]
_OPS = {Stage.STOPPED: "Delete", Stage.PAUSED: "Pause", Stage.RUNNING: "Resume"}


class Tasks:
    """The verbs of tasks. `check` checks both ends before a start.

    `forget`, `at_time` and `reset` are functions of `beginning.py` by default.
    """

    def __init__(
        self,
        cluster: Cluster,
        check: Check = check_task,
        forget: Forget = forget,
        at_time: AtTime = at_time,
        reset: Reset = reset,
    ) -> None:
        self._cluster, self._check, self._forget, self._at_time = cluster, check, forget, at_time
        self._reset = reset
        self._starting: set[str] = set()
        self._latch = Lock()

    def check(self, request: CheckTask) -> Answer:
        """Run the checks of a task.

        Raises what the checks raise where a server can't be asked at all, and CLUSTER-016 for a `start_time` that a
        start would not take.
        """
        task = parse_task(request.task)
        configs = plan(self._cluster.state, task, ())
        unknown = sorted(set(request.also).difference(opt_in_names()))
        if unknown:
            raise ClusterError("CLUSTER-016", cause=f"--also takes {', '.join(opt_in_names())}, not {unknown[0]}")
        starts = starts_of(configs, request.start_time, self._at_time)
        report = self._check(task, configs, request.also, ())
        return with_starts(report.to_dict(request.err_cnt, request.warn_cnt), starts)

    def start(self, request: StartTask, *, checked: bool = False) -> Answer:
        """Start a task on all of its sources, or those named; on none where one of them can't start.

        `checked`: the checks have been run. `msg` of the answer names keys that have no effect.
        With `reset: show` nothing is checked or started, and the answer's `reset` says what a reset would do.
        Raises ClusterError CLUSTER-007 to 009, 015, 016, 018, 083, 093, 099, 100; ConfigError.
        """
        task = parse_task(request.task)
        with self._alone(task.name):
            permit = self._cluster.permit()
            state = self._cluster.state
            configs = plan(state, task, request.sources)
            names = [config.source_id for config in configs]
            self._cluster.hear(names)
            self._refuse(state, task, request, names)
            if request.reset == "show":
                return plain(reset=self._reset(plan(state, task, ()), True, permit))
            told = ""
            starts = self._starts(configs, request)
            if request.reset:
                self._draw_attempt(task.name)
                self._reset(plan(state, task, ()), False, permit)
            try:
                others = others_of(state, task, configs)
                told = "" if checked else self._checked(task, configs, others)
                if request.remove_meta:
                    self._draw_attempt(task.name)
                    self._forget(configs[0], permit)
                    told = "" if checked else self._checked(task, configs, others)  # again, without the records
            except CheckError as error:
                return {"result": False, "msg": str(error), "sources": [], "checkResult": error.cause}
            with self._cluster.change() as writing:
                refuse_changed(state, writing.state, task.name, names)
                _refuse_twin(writing.state, task.name)
                first = writing.first_revision
                rows = [SubtaskRow(task.name, name, Stage.RUNNING, first, _stored(starts, name)) for name in names]
                if task.name not in state.tasks:
                    writing.put_task(TaskRow(task.name, kept(request.task)))
                for row in rows:
                    writing.put_subtask(row)
        started = answer(settle(self._cluster, rows, Stage.RUNNING))
        notes = started["msg"] or "\n".join(task.notices)
        return with_starts({**started, "msg": notes, "checkResult": told}, starts)

    def create(self, text: str) -> Answer:
        """Store a task without starting it, as DM's REST does. Raises as `start`."""
        task = parse_task(text)
        with self._alone(task.name):
            state = self._cluster.state
            if task.name in state.tasks:
                raise ClusterError("CLUSTER-007", values={"task": task.name})
            _refuse_twin(state, task.name)
            configs = plan(state, task, ())
            told = self._checked(task, configs, ())
            names = [config.source_id for config in configs]
            with self._cluster.change() as writing:
                refuse_changed(state, writing.state, task.name, names)
                _refuse_twin(writing.state, task.name)
                rows = [SubtaskRow(task.name, name, Stage.STOPPED, writing.first_revision) for name in names]
                writing.put_task(TaskRow(task.name, kept(text)))
                for row in rows:
                    writing.put_subtask(row)
        return plain(checkResult=told)

    def anew(self, request: StartTask) -> Answer:
        """Start a stored task that is stopped, with the options of a start. Raises as `start`, and CLUSTER-016."""
        task = parse_task(request.task)
        with self._alone(task.name):
            permit = self._cluster.permit()
            self._cluster.hear([row.source for row in self._cluster.state.of_task(task.name)])
            with self._cluster.change() as writing:  # after any resume that has begun; none begins from here on
                state = writing.state
            rows = subtasks(state, task.name, request.sources)
            _refuse_unstopped(rows)
            if request.remove_meta and len(rows) < len(state.of_task(task.name)):
                raise ClusterError("CLUSTER-016", cause="remove-meta is of all sources of a task: name none")
            configs = {row.source: subtask_config(state, row) for row in rows}
            starts = self._starts(configs.values(), request)
            if request.remove_meta:
                self._draw_attempt(task.name)
                self._forget(configs[rows[0].source], permit)
            with self._cluster.change() as writing:
                refuse_changed(state, writing.state, task.name, configs)
                for row in rows:
                    revision = row.newest + 1  # reports of before are of an earlier one
                    start = _stored(starts, row.source)
                    writing.put_subtask(replace(row, start=start, brief=None, revision=revision))
        started = self._operate(ResumeTask(name=task.name, sources=request.sources), Stage.RUNNING)
        return with_starts(started, starts)

    def drop_meta(self, task: str) -> None:
        """Drop everything that the target has on record of a task that is stopped on all of its sources.

        Raises ClusterError CLUSTER-016 to 018, 100; TargetError.
        """
        with self._alone(task):
            permit = self._cluster.permit()
            with self._cluster.change() as writing:  # after any resume that has begun
                state = writing.state
            rows = subtasks(state, task, ())
            _refuse_unstopped(rows)
            self._draw_attempt(task)
            self._forget(subtask_config(state, rows[0]), permit)

    def halt(self, request: TaskRequest) -> Answer:
        """Stop the task and keep it, to be resumed: the "stop" of DM's REST."""
        return self._operate(request, Stage.STOPPED, keep=True)

    def stop(self, request: TaskRequest) -> Answer:
        """Stop subtasks and remove them from the store. A task without subtasks ends."""
        return self._operate(request, Stage.STOPPED)

    def pause(self, request: TaskRequest) -> Answer:
        """Pause subtasks, and wait until they are paused."""
        return self._operate(request, Stage.PAUSED)

    def resume(self, request: TaskRequest) -> Answer:
        """Resume subtasks, and wait until they run. Raises ClusterError CLUSTER-018 while their task is starting."""
        return self._operate(request, Stage.RUNNING)

    def _draw_attempt(self, task: str) -> None:
        """Store another attempt of the task, before its records are dropped.

        The next start copies from a new dump then, even where the dropping fails, or this start or process ends.
        """
        with self._cluster.change() as writing:
            writing.put_text(attempt_name(task), token_hex(8))

    def _operate(self, request: TaskRequest, wanted: Stage, *, keep: bool = False) -> Answer:
        """Change the stage of one task on all or some sources, or of all tasks of some, `batch_size` rows at a time."""
        rows = subtasks(self._cluster.state, request.name, request.sources)
        self._cluster.hear([row.source for row in rows])
        done: list[Answer] = []
        size = len(rows) if request.name else request.batch_size
        for first in range(0, len(rows), size):
            done += settle(self._cluster, self._want(rows[first : first + size], wanted, keep), wanted)
        return answer(done, op=_OPS[wanted])

    def _want(self, rows: Sequence[SubtaskRow], wanted: Stage, keep: bool) -> list[SubtaskRow]:
        """Store the wanted stage; return the rows as they are then. Raises ClusterError CLUSTER-018."""
        with self._cluster.change() as writing:
            known = writing.state.subtasks
            changed = []
            for old in rows:
                row = known.get((old.task, old.source))
                if row is None:
                    continue  # somebody else has just stopped it
                if wanted is Stage.RUNNING and row.task in self._starting:
                    raise ClusterError("CLUSTER-018", Where(row.source), values={"task": row.task})
                revision = row.newest + 1 if wanted is Stage.RUNNING else row.newest
                changed.append(replace(row, stage=wanted, revision=revision))
                if wanted is Stage.STOPPED and not keep:
                    writing.drop_subtask(row.task, row.source)
                else:
                    writing.put_subtask(changed[-1])
            if wanted is Stage.RUNNING:
                _order_anew(writing, {row.source for row in changed if row.claimed_later})
            left = {task for task, _ in writing.state.subtasks}
            for task in {row.task for row in changed} - left:
                writing.drop_task(task)
        return changed

    def _starts(self, configs: Iterable[SubtaskConfig], request: StartTask) -> dict[str, TimedStart]:
        """Return as `starts_of`. Called before records are dropped: a refused time changes nothing."""
        return starts_of(configs, request.start_time, self._at_time, forgets=_forgets(request))

    def _checked(self, task: TaskConfig, configs: Sequence[SubtaskConfig], others: Sequence[SubtaskConfig]) -> str:
        """Run the checks; return their findings. Raises CheckError CHECK-001."""
        report = self._check(task, configs, (), others)
        require(report)
        return _told(report)

    def _refuse(self, state: State, task: TaskConfig, request: StartTask, names: Sequence[str]) -> None:
        for name in names:
            if (task.name, name) in state.subtasks:
                raise ClusterError("CLUSTER-007", Where(name), values={"task": task.name})
        for name in names:
            if self._cluster.serving(name) is None:
                raise ClusterError("CLUSTER-015", Where(name))
        _refuse_twin(state, task.name)
        known = state.tasks.get(task.name)
        if (request.remove_meta or request.reset) and known is not None:
            asked = "reset" if request.reset else "remove-meta"
            cause = f"{asked} drops what the target has of the whole task: stop-task {task.name} first"
            raise ClusterError("CLUSTER-016", cause=cause)
        if known is not None and not _same(task_config(known), task):
            raise ClusterError("CLUSTER-009", values={"task": task.name})

    @contextmanager
    def _alone(self, task: str) -> Iterator[None]:
        """Allow one start of a task at a time. Raises ClusterError CLUSTER-018."""
        with self._latch:
            if task in self._starting:
                raise ClusterError("CLUSTER-018", values={"task": task})
            self._starting.add(task)
        try:
            yield
        finally:
            with self._latch:
                self._starting.discard(task)


def _stored(starts: Mapping[str, TimedStart], source: str) -> str:
    """Return a source's start point in its stored form, "" for the one in the task's file."""
    return starts[source].meta.model_dump_json(by_alias=True) if source in starts else ""


def _forgets(request: StartTask) -> bool:
    return request.remove_meta or request.reset == "do"


def plan(state: State, task: TaskConfig, sources: Sequence[str]) -> tuple[SubtaskConfig, ...]:
    """Return the subtasks on all sources of the task, or those named. Raises ClusterError CLUSTER-008; ConfigError."""
    listed = [instance.source_id for instance in task.mysql_instances]
    for name in sources:
        if name not in listed:
            raise ClusterError("CLUSTER-008", Where(name), f"task {task.name} has {', '.join(listed)}")
    chosen = tuple(one for one in task.mysql_instances if not sources or one.source_id in sources)
    for one in chosen:
        if one.source_id not in state.sources:
            raise ClusterError("CLUSTER-008", Where(one.source_id))
    part = task.model_copy(update={"mysql_instances": chosen})
    return plan_subtasks(part, [source_config(state.sources[one.source_id]) for one in chosen])


def others_of(state: State, task: TaskConfig, configs: Sequence[SubtaskConfig]) -> list[SubtaskConfig]:
    """Return the subtasks on the task's other sources, as far as these are known and can be read."""
    chosen = {config.source_id for config in configs}
    found: list[SubtaskConfig] = []
    for one in task.mysql_instances:
        if one.source_id not in chosen:
            with suppress(ClusterError, ConfigError):
                found += plan(state, task, [one.source_id])
    return found


def subtasks(state: State, task: str, sources: Sequence[str]) -> list[SubtaskRow]:
    """Return the subtasks of a task, of sources, or both. Raises ClusterError CLUSTER-016 without either, 017, 008."""
    for name in sources:
        if name not in state.sources:
            raise ClusterError("CLUSTER-008", Where(name))
    if task:
        rows = [row for row in state.of_task(task) if not sources or row.source in sources]
        if not rows:
            raise ClusterError("CLUSTER-017", Where(", ".join(sources) or None), values={"task": task})
        return rows
    if not sources:
        raise ClusterError("CLUSTER-016", cause="name a task, or sources with -s")
    return [row for row in state.subtasks.values() if row.source in sources]


def _refuse_twin(state: State, task: str) -> None:
    """Raise ClusterError CLUSTER-093 for a new task whose name differs from another one's only by case.

    Tables in the target are named after the task, and some targets fold names. A task that exists already goes on.
    """
    other = next((name for name in state.tasks if name.lower() == task.lower()), "")
    if other and task not in state.tasks:
        raise ClusterError("CLUSTER-093", values={"task": task, "other": other})


def _order_anew(writing: Writing, sources: Iterable[str]) -> None:
    """Give the sources' workers a new order: the target knows an order of this store that is later than theirs."""
    bounds = writing.state.bounds
    for source in sources:
        if source in bounds:
            writing.bind(source, bounds[source].worker)


def _refuse_unstopped(rows: Sequence[SubtaskRow]) -> None:
    for row in rows:
        if row.stage is not Stage.STOPPED:
            raise ClusterError("CLUSTER-016", Where(row.source), f"stop task {row.task} first")


def _same(old: TaskConfig, new: TaskConfig) -> bool:
    there = {"target_database": new.target_database}
    return same_login(old.target_database, new.target_database) and old.model_copy(update=there) == new


def _told(report: CheckReport) -> str:
    form = report.to_dict()
    return str(form["msg"]) if not form["results"] else json.dumps(form, ensure_ascii=False)
