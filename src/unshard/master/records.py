"""What a task has on record in its target, changed by hand: operators of the binlog, tracked structures."""

from __future__ import annotations

from dataclasses import replace

from unshard.api.status import Stage
from unshard.api.verbs import Binlog, BinlogSchema, ShardDdlLock, ShardDdlLockUnlock
from unshard.errors import ClusterError, Where
from unshard.master.answers import Answer
from unshard.master.cluster import Cluster
from unshard.master.orders import subtask_config, unread
from unshard.master.stages import settle
from unshard.master.state import SubtaskRow
from unshard.master.status import Statuses
from unshard.master.tasks import subtasks
from unshard.operate.binlog import answer_binlog
from unshard.operate.locks import answer_locks, answer_unlock, task_of
from unshard.operate.schema import answer_schema
from unshard.operate.subject import Subject

_RESTS = (Stage.PAUSED, Stage.STOPPED, Stage.FINISHED)


class Records:
    def __init__(self, cluster: Cluster, statuses: Statuses) -> None:
        self._cluster, self._statuses = cluster, statuses

    def binlog(self, request: Binlog, who: str) -> Answer:
        """Give, take back or list operators; where one was given, a task that an error has paused goes on.

        The worker is asked whether one has, as for query-status: the master may hear of it a moment later.
        Raises ClusterError CLUSTER-017, 047; DdlError; TargetError.
        """
        subtasks(self._cluster.state, request.task, request.sources)
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
        """Sharding DDL that waits, of one task or all. Raises ClusterError CLUSTER-017, TargetError."""
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

    def _subject(self, task: str) -> Subject:
        """Raises ClusterError CLUSTER-091 where no part of the task can be read."""
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
