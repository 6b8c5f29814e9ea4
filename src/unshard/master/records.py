"""A task's records in its target, changed by a human: operators of the binlog, tracked structures, locks."""

from __future__ import annotations

from dataclasses import replace
from secrets import token_hex

from unshard.api.status import Stage
from unshard.api.verbs import Answer, Binlog, BinlogSchema, ShardDdlLock, ShardDdlLockUnlock, Validation
from unshard.errors import ClusterError, Where
from unshard.master.cluster import Cluster
from unshard.master.orders import subtask_config, unread
from unshard.master.settle import settle
from unshard.master.state import SubtaskRow
from unshard.master.status import Statuses
from unshard.master.tasks import subtasks
from unshard.operate.binlog import answer_binlog
from unshard.operate.binlog_schema import answer_schema
from unshard.operate.locks import answer_locks, answer_unlock, task_of
from unshard.operate.subject import Subject, wrong_use
from unshard.operate.validation import answer_validation

_RESTS = (Stage.PAUSED, Stage.STOPPED, Stage.FINISHED)


class Records:
    """The verbs that read or change a task's records in its target."""

    def __init__(self, cluster: Cluster, statuses: Statuses) -> None:
        self._cluster, self._statuses = cluster, statuses

    def binlog(self, request: Binlog, who: str) -> Answer:
        """Give, take back or list operators; giving one resumes a task that an error has paused.

        The worker is asked whether an error has paused the task, as for query-status: the master may hear of it a
        moment later. Raises ClusterError CLUSTER-017, 047, 099; DdlError; TargetError.
        """
        rows = subtasks(self._cluster.state, request.task, request.sources)
        self._cluster.hear([row.source for row in rows])
        waiting: list[SubtaskRow] = []

        def effect(source: str) -> str:
            with self._cluster.written():
                row = self._cluster.state.subtasks.get((request.task, source))
                if row is None or row.stage is not Stage.RUNNING:
                    return "takes effect when the task is resumed and gets there"
                told = self._statuses.reports([source], request.task)[source].sub_task_status
            if not any(one.name == request.task and one.result is not None and one.result.errors for one in told):
                return "takes effect when the task gets there"
            waiting.append(row)
            return "the task goes on now"

        told = answer_binlog(self._subject(request.task), request, who, effect)
        with self._cluster.written():
            self._resume(waiting)
        return told

    def schema(self, request: BinlogSchema) -> Answer:
        """Show or set tracked structures. Raises ClusterError CLUSTER-016 for a change while a subtask runs, 017."""
        rows = subtasks(self._cluster.state, request.task, request.sources)
        if request.op != "list":
            for row in rows:
                if (row.brief.stage if row.brief is not None else row.stage) not in _RESTS:
                    raise ClusterError("CLUSTER-016", Where(row.source), f"pause-task {row.task} first")
        return answer_schema(self._subject(request.task), request)

    def locks(self, request: ShardDdlLock) -> Answer:
        """Return the sharding DDL that waits, of one task or all. Raises ClusterError CLUSTER-017, TargetError."""
        state = self._cluster.state
        if request.task and request.task not in state.tasks:
            raise ClusterError("CLUSTER-017", values={"task": request.task})
        if request.task:
            return answer_locks([self._subject(request.task)], request)
        subjects, faults = [], []
        for name in state.tasks:
            try:
                subjects.append(self._subject(name))
            except ClusterError as error:
                faults.append(str(error))
        told = answer_locks(subjects, request)
        return {**told, "msg": "\n".join([*faults, told["msg"]])} if faults else told

    def unlock(self, request: ShardDdlLockUnlock, who: str) -> Answer:
        """Settle a lock by hand. Raises ClusterError CLUSTER-017, 047; ShardError SHARD-003 to 006; TargetError."""
        task = task_of(request.id)
        if task not in self._cluster.state.tasks:
            raise ClusterError("CLUSTER-017", values={"task": task})
        return answer_unlock(self._subject(task), request, who)

    def validation(self, request: Validation, who: str) -> Answer:
        """Answer a verb of continuous validation; workers get a start or a stop at once.

        Raises ClusterError CLUSTER-017, 047; TargetError.
        """
        state = self._cluster.state
        if bool(request.task) == request.all_task:
            raise wrong_use(f"validation {request.op} needs a task, or --all-task")
        if request.all_task and request.op not in ("start", "stop"):
            raise wrong_use("--all-task goes with start and stop")
        names = list(state.tasks) if request.all_task else [request.task]
        subjects = []
        for name in names:
            rows = state.of_task(name) if request.all_task else subtasks(state, name, request.sources)
            named = {row.source for row in rows} & set(request.sources or (row.source for row in rows))
            if named or not request.all_task:
                subject = self._subject(name)
                subjects.append(replace(subject, sources=tuple(sorted(named))) if request.all_task else subject)

        def effect(task: str, source: str) -> str:
            serving = self._cluster.serving(source)
            self._cluster.validation[task, source] = token_hex(8)
            if serving is None:
                return "takes effect once a worker serves the source"
            self._cluster.wake([serving.worker])
            return "the worker is told"

        given = request.model_copy(update={"sources": ()}) if request.all_task else request
        return answer_validation(subjects, given, who, effect)

    def _subject(self, task: str) -> Subject:
        """Return the task's subject. Raises ClusterError CLUSTER-091 where no part of the task can be read."""
        state = self._cluster.state
        rows = state.of_task(task)
        faulty = {error.where.source for error in unread(state, [row.source for row in rows], ())}
        known = [row for row in rows if row.source not in faulty]
        subject = Subject.of_subtasks([subtask_config(state, row) for row in known or rows])
        return replace(subject, sources=tuple(row.source for row in rows))

    def _resume(self, rows: list[SubtaskRow]) -> None:
        if not rows:
            return
        with self._cluster.change() as writing:
            known = writing.state.subtasks
            there = [known[row.task, row.source] for row in rows if (row.task, row.source) in known]
            renewed = [replace(row, revision=row.newest + 1) for row in there]
            for row in renewed:
                writing.put_subtask(row)
        settle(self._cluster, renewed, Stage.RUNNING)
