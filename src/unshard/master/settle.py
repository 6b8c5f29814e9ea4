"""Waits until subtasks have reached the requested stage, for ten seconds at most, as DM does."""

from __future__ import annotations

from collections.abc import Sequence

from unshard.api.status import ProcessError, Stage
from unshard.api.verbs import Answer, of_source
from unshard.errors import ClusterError, Where
from unshard.master.cluster import Cluster
from unshard.master.orders import unread
from unshard.master.state import SubtaskRow

WAIT_SECONDS = 10.0
STOPPED_SINCE = "it has been stopped meanwhile"
NOT_BOUND = "source not bound: it is done once a worker serves it"
CUT_OFF = f"{NOT_BOUND}; a worker that is alive but cut off from the masters goes on with it until it hears of it"
DISABLED = "the source is disabled: nothing of it runs until it is enabled"
_NOTHING_RUNS = frozenset({CUT_OFF, DISABLED})
_SETTLED = {
    Stage.RUNNING: frozenset({Stage.RUNNING, Stage.FINISHED}),
    Stage.PAUSED: frozenset({Stage.PAUSED, Stage.STOPPED, Stage.FINISHED}),
    Stage.STOPPED: frozenset({Stage.STOPPED}),
}


def settle(cluster: Cluster, rows: Sequence[SubtaskRow], wanted: Stage) -> list[Answer]:
    """Wake the workers and wait until each subtask is `wanted`, or has failed on its way; return an answer for each.

    Called for rows that are stored already: raises ClusterError CLUSTER-094 where another master leads meanwhile. The
    worker may not know a subtask any more that is to be stopped. A subtask whose source is disabled or has no worker
    does not run as far as the master can know, so it counts as paused or stopped, and not as started.
    """
    with cluster.written():
        state = cluster.state
        cluster.wake(state.worker_of(row.source) for row in rows if cluster.serving(row.source) is not None)
        cluster.liveness.wait(lambda: all(_has_settled(cluster, row, wanted) for row in rows), WAIT_SECONDS)
        return [_told(cluster, row, wanted) for row in rows]


def _has_settled(cluster: Cluster, row: SubtaskRow, wanted: Stage) -> bool:
    """Return whether nothing more is to be waited for: the subtask has arrived and its stage is stored, or never will.

    The next verb goes by the store. Right after a pause that was answered too soon it would refuse the task as running.
    """
    outcome = _outcome(cluster, row, wanted)
    return bool(outcome) or (outcome == "" and _is_stored(cluster, row))


def _is_stored(cluster: Cluster, row: SubtaskRow) -> bool:
    """Return whether the store has the stage that the worker last reported of a subtask, or is not to get it."""
    stored, bound = cluster.state.subtasks.get((row.task, row.source)), cluster.serving(row.source)
    brief = cluster.liveness.brief(bound.worker, bound.epoch, row.task) if bound is not None else None
    if stored is None or brief is None or brief.revision < stored.revision:
        return True
    return stored.brief is not None and stored.brief.stage is brief.stage


def _outcome(cluster: Cluster, row: SubtaskRow, wanted: Stage) -> str | None:
    """Return None while it is on its way, "" when it has arrived, else why it never will."""
    if wanted is not Stage.STOPPED and (row.task, row.source) not in cluster.state.subtasks:
        return STOPPED_SINCE
    source = cluster.state.sources.get(row.source)
    if wanted is not Stage.STOPPED and source is not None and not source.enabled:
        return DISABLED
    bound = cluster.serving(row.source)
    if bound is None:
        return NOT_BOUND if wanted is Stage.RUNNING else CUT_OFF
    beat = cluster.liveness.beat_of(bound.worker)
    if beat is None or beat.epoch != bound.epoch:
        if beat is None or beat.epoch:
            return None
        if wanted is not Stage.RUNNING:
            return ""  # it serves nothing, so nothing of the task runs there
        return "".join(str(error) for error in unread(cluster.state, [row.source], ())) or refused(cluster, row.source)
    brief = cluster.liveness.brief(bound.worker, bound.epoch, row.task)
    if brief is None:
        return "" if wanted is Stage.STOPPED else None
    if wanted is Stage.RUNNING:
        if brief.revision < row.revision:
            return None
        if brief.stage is Stage.PAUSED and brief.error is not None:
            return _fault(brief.error)
    return "" if brief.stage in _SETTLED[wanted] else None


def refused(cluster: Cluster, source: str) -> str | None:
    """Return why the worker of a source can't carry out its order, with what to do; None where it can."""
    refusal = cluster.refusal(source)
    return _fault(refusal) if refusal is not None else None


def refused_by(cluster: Cluster, source: str, but: str) -> list[str]:
    """Return what other workers than `but` have said when they could not begin with the source, a text for each."""
    row = cluster.state.sources[source]
    found = sorted(cluster.refusals.of(row).items())
    return [f"worker {name} could not serve it: {_fault(error)}" for name, error in found if name != but]


def refusals_of(cluster: Cluster, worker: str) -> list[str]:
    """Return why the worker could not serve sources, a text for each."""
    found = sorted(cluster.refusals.by(cluster.state, worker).items())
    return [f"it could not serve source {name}: {_fault(error)}" for name, error in found]


def _fault(error: ProcessError) -> str:
    cause = f"\n  why: {error.raw_cause}" if error.raw_cause else ""
    hint = f"\n  what to do: {error.workaround}" if error.workaround else ""
    return f"{error.err_code}: {error.message}{cause}{hint}"


def _told(cluster: Cluster, row: SubtaskRow, wanted: Stage) -> Answer:
    worker = cluster.state.worker_of(row.source)
    outcome = _outcome(cluster, row, wanted)
    if outcome is None:
        brief = cluster.liveness.brief(worker, _epoch(cluster, row.source), row.task)
        values = {"wanted": wanted.value, "found": brief.stage.value if brief is not None else "unknown"}
        error = ClusterError("CLUSTER-010", Where(row.source), values={**values, "seconds": f"{WAIT_SECONDS:g}"})
        return of_source(row.source, worker, refused(cluster, row.source) or str(error), good=False)
    good = not outcome or (outcome in _NOTHING_RUNS and wanted is not Stage.RUNNING)
    return of_source(row.source, worker, outcome, good=good)


def _epoch(cluster: Cluster, source: str) -> int:
    bound = cluster.state.bounds.get(source)
    return bound.epoch if bound is not None else 0
