"""`query-status`: the reports of all workers, and DM's summary of a task in one word."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

from unshard.api.status import (
    CopyProgress,
    FigureHistory,
    LogTail,
    ProcessError,
    ProcessResult,
    Service,
    SourceReport,
    SourceStatus,
    Stage,
    SubTaskStatus,
    UnitName,
)
from unshard.api.verbs import Answer, QueryStatus, answer
from unshard.errors import ClusterError, UnshardError, Where
from unshard.master.cluster import Cluster
from unshard.master.orders import unread
from unshard.master.settle import DISABLED
from unshard.master.state import State, SubtaskRow
from unshard.master.tasks import subtasks

ASK_SECONDS = 5.0
_ASKED_AT_ONCE = 16
_ALL_ALIKE = (Stage.NEW, Stage.FINISHED, Stage.STOPPED)
_AT_WORK = (Stage.NEW, Stage.RUNNING)
_NO_WORKER = "CLUSTER-015"
REFUSED = "the worker can't carry out its order; it tries again with each heartbeat"
_IDLE = "source {} is disabled: none of its tasks runs until it is enabled"
_NO_RELAY = (Stage.PAUSED, Stage.STOPPED)


class Statuses:
    """The status of tasks, sources and workers: asked of the workers, or as the workers last reported it."""

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster

    def query(self, request: QueryStatus) -> Answer:
        """Show all tasks in short, or one in full, or with `more` all in full. Raises ClusterError CLUSTER-017, 008."""
        state = self._cluster.state
        if request.name or request.sources:
            rows = subtasks(state, request.name, request.sources)
        else:
            rows = list(state.subtasks.values())
        names = list(dict.fromkeys(row.source for row in rows)) or list(request.sources)
        reports = self.reports(names, request.name or None, asks=True)
        faults = map(str, unread(state, names, dict.fromkeys(row.task for row in rows)))
        told = "\n".join((*faults, *(_IDLE.format(name) for name in names if _is_disabled(state, name))))
        if request.name or request.more or (request.sources and not request.name):
            return answer((_form(reports[name]) for name in names), told)
        tasks = [
            {
                "taskName": task,
                "taskStatus": summary(task, [reports[row.source] for row in state.of_task(task)]),
                "sources": [row.source for row in state.of_task(task)],
            }
            for task in state.tasks
        ]
        return {"result": True, "msg": told, "tasks": tasks}

    def reports(self, sources: Sequence[str], task: str | None, *, asks: bool = False) -> dict[str, SourceReport]:
        """Return the report of each source, asked of all workers at once; without an answer, what is on record.

        `asks`: by `WorkerLink.fresh_report`, after a wait for the first beats where the leader has just changed.
        """
        if asks:
            self._cluster.await_beats(sources)
        state = self._cluster.state
        with ThreadPoolExecutor(_ASKED_AT_ONCE) as pool:
            told = pool.map(lambda name: self._report(state, name, task, asks=asks), sources)
            return dict(zip(sources, told, strict=True))

    def copy_progress(self, source: str, task: str, life: str, since: int) -> CopyProgress:
        """Return the progress of the copy by table, from the worker of the source. Raises its error, or CLUSTER-015."""
        bound = self._cluster.serving(source)
        if bound is None:
            raise self._cluster.unserved(source)
        return self._cluster.link(bound.worker).copy_progress(task, life, since, ASK_SECONDS)

    def history(self, source: str) -> FigureHistory:
        """Return what the source's worker has kept of the figures. Raises its error, or ClusterError CLUSTER-015."""
        bound = self._cluster.serving(source)
        if bound is None:
            raise self._cluster.unserved(source)
        return self._cluster.link(bound.worker).history(ASK_SECONDS)

    def log_tail(self, source: str, life: str, after: int) -> LogTail:
        """Return the newest lines of the log of the source's worker. Raises its error, or ClusterError CLUSTER-015."""
        bound = self._cluster.serving(source)
        if bound is None:
            raise self._cluster.unserved(source)
        return self._cluster.link(bound.worker).log_tail(life, after, ASK_SECONDS)

    def _report(self, state: State, source: str, task: str | None, *, asks: bool) -> SourceReport:
        bound = self._cluster.serving(source)
        if bound is None:
            return _recorded(state, source, task, self._cluster.unserved(source))
        try:
            link = self._cluster.link(bound.worker)
            found = link.fresh_report(task, ASK_SECONDS) if asks else link.report(task, ASK_SECONDS)
        except UnshardError as error:
            return _recorded(state, source, task, error, self._cluster.refusal(source))
        if found.source_status.source != source:
            return _recorded(state, source, task, ClusterError(_NO_WORKER, Where(source)))
        faults = unread(state, [source], ())
        result = ProcessResult(errors=tuple(map(process_error, faults))) if faults else found.source_status.result
        more = {"worker": bound.worker, "service": Service.SERVED, "result": result}
        status = found.source_status.model_copy(update=more)
        told = {one.name for one in found.sub_task_status}
        missing = [_unreported(state, row) for row in _rows(state, source, task) if row.task not in told]
        return found.model_copy(update={"source_status": status, "sub_task_status": (*found.sub_task_status, *missing)})


def summary(task: str, reports: Iterable[SourceReport]) -> str:
    """Return DM's word for a task over all its sources (reference of DM, 2.3); ours where nobody serves one of them."""
    found = [(report, one) for report in reports for one in report.sub_task_status if one.name == task]
    stages = [one.stage for _, one in found]
    if any(one.stage is Stage.PAUSED and one.result is not None and one.result.errors for _, one in found):
        return f"Error - Some error occurred in subtask. Please run `query-status {task}` to get more details."
    for report, one in found:
        if one.stage in _AT_WORK and report.source_status.service is Service.REFUSED:
            told = f"Worker {report.source_status.worker} can't serve source {report.source_status.source}"
            return f"Error - {told}. Please run `query-status {task}` to get more details."
        if one.stage in _AT_WORK and report.source_status.service is Service.NO_WORKER:
            source = report.source_status.source
            return f"Error - No worker serves source {source}. Please run `query-status {task}` to get more details."
    for report, one in found:
        relay = report.source_status.relay_status
        if one.stage is Stage.RUNNING and one.unit is UnitName.SYNC and relay is not None and relay.stage in _NO_RELAY:
            return f"Error - Relay status is {relay.stage}. Please run `query-status {task}` to get more details."
    if Stage.PAUSED in stages:
        return Stage.PAUSED.value
    for stage in _ALL_ALIKE:
        if stages and all(one is stage for one in stages):
            return stage.value
    return Stage.RUNNING.value


def process_error(error: UnshardError) -> ProcessError:
    """Return an error in DM's form of `query-status`."""
    return ProcessError(
        ErrCode=error.code,
        ErrClass=error.code.split("-")[0].lower(),
        ErrScope=error.scope,
        Message=error.message,
        RawCause=error.cause,
        Workaround=error.hint,
    )


def _rows(state: State, source: str, task: str | None) -> list[SubtaskRow]:
    return [row for row in state.of_source(source) if task in (None, row.task)]


def _recorded(
    state: State, source: str, task: str | None, error: UnshardError, refusal: ProcessError | None = None
) -> SourceReport:
    """Return the master's record of a source whose worker does not answer, or refuses its order, with the reason."""
    service = Service.NO_WORKER if error.code == _NO_WORKER else Service.NO_ANSWER
    result = ProcessResult(errors=(process_error(error),))
    if refusal is not None:
        service, result = Service.REFUSED, ProcessResult(errors=(refusal,), detail=REFUSED)
    status = SourceStatus(source=source, worker=state.worker_of(source), service=service, result=result)
    last = tuple(_last(state, row) for row in _rows(state, source, task))
    return SourceReport(source_status=status, sub_task_status=last)


def _last(state: State, row: SubtaskRow) -> SubTaskStatus:
    brief = row.brief
    if brief is None:
        return _unreported(state, row)
    result = ProcessResult(errors=(brief.error,)) if brief.error is not None else None
    unit = UnitName(brief.unit) if brief.unit in tuple(UnitName) else UnitName.NONE
    note = "the last that was heard" + (f"; {DISABLED}" if _is_disabled(state, row.source) else "")
    return SubTaskStatus(name=row.task, stage=brief.stage, unit=unit, result=result, note=note)


def _unreported(state: State, row: SubtaskRow) -> SubTaskStatus:
    """Return the status of a subtask of which its worker reports nothing: it has not begun, or has been stopped."""
    if _is_disabled(state, row.source):
        return SubTaskStatus(name=row.task, stage=Stage.STOPPED, note=DISABLED)
    stage = row.stage if row.stage is not Stage.RUNNING else Stage.NEW
    return SubTaskStatus(name=row.task, stage=stage)


def _is_disabled(state: State, source: str) -> bool:
    row = state.sources.get(source)
    return row is not None and not row.enabled


def _form(report: SourceReport) -> dict[str, Any]:
    form = report.model_dump(mode="json", by_alias=True)
    # the question was answered; a fault of the source is in its own `result`
    return {"result": True, "msg": "", **form}
