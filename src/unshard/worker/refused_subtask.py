"""Orders that can't be read, and the subtasks that report the reason.

This worker can't read an order of a master of a later version. The master can't read an order whose stored file is
damaged.
"""

from __future__ import annotations

from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, TypeVar

from pydantic import ValidationError

from unshard.api.heartbeat import SubtaskBrief, SubtaskOrder
from unshard.api.status import ProcessError, ProcessResult, Stage, SubTaskStatus, UnitName
from unshard.config.section import Section
from unshard.errors import ClusterError, Where
from unshard.worker.report import process_error

Config = TypeVar("Config", bound=Section)
_SHOWN_AT_MOST = 5


def understood(kind: type[Config], form: dict[str, Any], source: str) -> Config:
    """Return the config in an order. Raises ClusterError CLUSTER-085 with the keys that this version doesn't know."""
    try:
        return kind.model_validate(form)
    except ValidationError as error:
        faults = [f"{'.'.join(map(str, one['loc']))}: {one['msg']}" for one in error.errors()[:_SHOWN_AT_MOST]]
        raise ClusterError("CLUSTER-085", Where(source), "; ".join(faults)) from None


@dataclass(frozen=True, slots=True)
class RefusedSubtask:
    """A subtask that does not run because this worker can't read its order.

    A worker that can read the order resumes the subtask at once.
    """

    order: SubtaskOrder
    error: ProcessError
    since: datetime

    @classmethod
    def of(cls, order: SubtaskOrder, error: ClusterError) -> RefusedSubtask:
        """Return a subtask that is paused by `error` since now."""
        now = datetime.now(UTC)
        return cls(order, process_error(error, now), now)

    def brief(self) -> SubtaskBrief:
        """Return the report for the master. Its knowledge of the copy stays, and auto-resume waits for nothing."""
        kept = self.order.kept or SubtaskBrief(task=self.order.task, stage=Stage.PAUSED)
        told = {"stage": Stage.PAUSED, "revision": self.order.revision, "error": self.error}
        return kept.model_copy(update={**told, "next_resume": self.since.isoformat(timespec="milliseconds")})

    def form(self) -> SubTaskStatus:
        """Return the status in the form of `query-status`."""
        result = ProcessResult(errors=(self.error,), detail="goes on by itself once its order can be read")
        since = self.since.isoformat(timespec="seconds")
        return SubTaskStatus(name=self.order.task, stage=Stage.PAUSED, unit=UnitName.NONE, result=result, since=since)
