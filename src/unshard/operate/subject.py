"""The task that a command is for, and the answer to it, source by source, in dmctl's form."""

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
    """A task's name, where its records are, its sources. `configs`: of the sources that are known whole, by id."""

    task: str
    meta_schema: str
    target: TargetConfig
    sources: tuple[str, ...]
    configs: Mapping[str, SubtaskConfig] = field(default_factory=dict)

    @classmethod
    def of_subtasks(cls, configs: Sequence[SubtaskConfig]) -> Subject:
        """The task that these are the parts of; at least one."""
        first = configs[0]
        by_id = {config.source_id: config for config in configs}
        return cls(first.name, first.meta_schema, first.target, tuple(by_id), by_id)

    @classmethod
    def of_files(cls, task: TaskConfig, sources: Sequence[SourceConfig]) -> Subject:
        """The task of a file, with those of its sources whose files are there too."""
        ids = tuple(instance.source_id for instance in task.mysql_instances)
        known = {source.source_id: plan_subtask(task, source) for source in sources if source.source_id in ids}
        return cls(task.name, task.meta_schema, task.target_database, ids, known)

    def chosen(self, given: Sequence[str]) -> list[str]:
        """The sources that are named, else all of the task. Raises ClusterError CLUSTER-047 for a name that is none."""
        for name in given:
            if name not in self.sources:
                raise wrong_use(f"-s takes {', '.join(self.sources)} or a source file of one, not {name}")
        return list(dict.fromkeys(given)) or list(self.sources)

    def each(self, sources: Sequence[str], one: Callable[[Any, MetaTables, str], str]) -> dict[str, Any]:
        """Do `one` thing for each source, on one connection to the target; dmctl's answer.

        `one` returns its `msg`; an UnshardError of it is told for its source, and the others are done all the same.
        Raises TargetError where the target can't be reached.
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
    """What was given can't be meant."""
    return ClusterError("CLUSTER-047", cause=text)
