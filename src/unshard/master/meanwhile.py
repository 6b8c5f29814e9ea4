"""Two operators at once: what a verb was planned by has to hold when it is written down. Pure.

Checks of both ends, a new login tried, records dropped in the target take seconds; the cluster's lock is not held as
long. So a verb reads the state, does its work, and asks here within its change whether all that it is about still is
as it was.
"""

from __future__ import annotations

from collections.abc import Iterable

from unshard.errors import ClusterError, Where
from unshard.master.state import State


def refuse_changed(before: State, now: State, task: str = "", sources: Iterable[str] = ()) -> None:
    """Raises ClusterError CLUSTER-083 where the task's file or subtasks, or a source's file, are others than before.

    Where a source is served, and what its worker says of a subtask, may change at any time and is no change.
    """
    if task and (before.tasks.get(task) != now.tasks.get(task) or _wanted(before, task) != _wanted(now, task)):
        raise ClusterError("CLUSTER-083", values={"what": f"task {task}"})
    for name in sources:
        if _file(before, name) != _file(now, name):
            raise ClusterError("CLUSTER-083", Where(name), values={"what": f"source {name}"})


def _wanted(state: State, task: str) -> set[tuple[str, str, int]]:
    return {(row.source, row.stage.value, row.revision) for row in state.of_task(task)}


def _file(state: State, name: str) -> tuple[str, bool] | None:
    row = state.sources.get(name)
    return (row.text, row.enabled) if row is not None else None
