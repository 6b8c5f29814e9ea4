"""The task that a command addresses, and the command's answer in dmctl's format, source by source."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from unshard.config.database import TargetConfig
from unshard.config.source import SourceConfig
from unshard.config.subtask import SubtaskConfig, plan_subtask
from unshard.config.task import TaskConfig
from unshard.errors import ClusterError, UnshardError
from unshard.mysql.connection import session
from unshard.mysql.endpoint import to_endpoint
from unshard.target.meta import MetaTables


@dataclass(frozen=True, slots=True)
class Subject:
    """The task of an operator's request: its name, the target and schema of its records, and its sources.

    `configs` are the subtasks by source id, for the sources whose settings are known.
    """

    task: str
    meta_schema: str
    target: TargetConfig
    sources: tuple[str, ...]
    configs: Mapping[str, SubtaskConfig] = field(default_factory=dict)

    @classmethod
    def of_subtasks(cls, configs: Sequence[SubtaskConfig]) -> Subject:
        """Return the task of these subtasks, of which there is at least one."""
        first = configs[0]
        by_id = {config.source_id: config for config in configs}
        return cls(first.name, first.meta_schema, first.target, tuple(by_id), by_id)

    @classmethod
    def of_files(cls, task: TaskConfig, sources: Sequence[SourceConfig]) -> Subject:
        """Return the task of a task file, with the subtasks of those sources whose files are given too."""
        ids = tuple(instance.source_id for instance in task.mysql_instances)
        known = {source.source_id: plan_subtask(task, source) for source in sources if source.source_id in ids}
        return cls(task.name, task.meta_schema, task.target_database, ids, known)

    def chosen(self, given: Sequence[str]) -> list[str]:
        """Return the named sources, or all of the task if none is named.

        Raises ClusterError CLUSTER-047 for an unknown name.
        """
        for name in given:
            if name not in self.sources:
                raise wrong_use(f"-s takes {', '.join(self.sources)} or a source file of one, not {name}")
        return list(dict.fromkeys(given)) or list(self.sources)

    def each(self, sources: Sequence[str], one: Callable[[Any, MetaTables, str], str]) -> dict[str, Any]:
        """Call `one` for each source, on one connection to the target. Returns dmctl's answer.

        `one` returns the source's `msg`. If it raises an UnshardError, the error becomes the source's `msg`, and the
        other sources are still done. Raises TargetError if the target can't be reached.
        """
        meta = MetaTables(self.meta_schema, self.task)
        results = []
        with session(to_endpoint(self.target), "target") as connection:
            for name in sources:
                good, text = True, ""
                try:
                    text = one(connection, meta, name)
                except UnshardError as error:
                    good, text = False, str(error)
                results.append({"result": good, "msg": text, "source": name, "worker": ""})
        return {"result": all(result["result"] for result in results), "msg": "", "sources": results}


def wrong_use(text: str) -> ClusterError:
    """Return the error for a command that is used wrongly."""
    return ClusterError("CLUSTER-047", cause=text)
