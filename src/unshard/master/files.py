"""The stored files of tasks, sources and members: shown, exported; templates of tasks."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import yaml

from unshard.api.verbs import Answer, Config, plain
from unshard.config.files import parse_task
from unshard.config.redact import hidden_text
from unshard.errors import ClusterError, Where
from unshard.master.cluster import Cluster
from unshard.master.passwords import kept
from unshard.master.state import State, TaskRow, known

SettingsOf = Callable[[str], dict[str, Any]]
"""Returns the settings of the process at an address. Raises ClusterError CLUSTER-039."""


class ConfigFiles:
    """The verbs that show and export configurations, and the templates of tasks.

    `own`: the settings of this master; `settings_of`: those of other members. Both without secrets.
    """

    def __init__(self, cluster: Cluster, own: dict[str, Any], settings_of: SettingsOf | None = None) -> None:
        self._cluster, self._own, self._settings_of = cluster, own, settings_of

    def show(self, request: Config) -> Answer:
        """Show a file or settings. Raises ClusterError CLUSTER-008, 017, 019 (unknown name), 039 (no answer)."""
        state = self._cluster.state
        name = request.name
        if request.type == "task":
            if name not in state.tasks:
                raise ClusterError("CLUSTER-017", values={"task": name})
            return plain(cfg=hidden_text(state.tasks[name].text))
        if request.type == "source":
            known(state, name)
            return plain(cfg=hidden_text(state.sources[name].text))
        if request.type == "task-template":
            return plain(cfg=hidden_text(self.template(name).text))
        if request.type == "master" and name == self._cluster.election.name:
            return plain(cfg=_yaml(self._own))
        addr = self._addr(state, request.type, name)
        if addr and self._settings_of is not None:
            return plain(cfg=_yaml(self._settings_of(addr)))
        if addr:
            return plain(cfg=_yaml({"name": name, "advertise-addr": addr}))
        fault = "there is none of that name"
        raise ClusterError("CLUSTER-019", values={"type": request.type, "name": name, "fault": fault})

    def _addr(self, state: State, kind: str, name: str) -> str:
        """Return the address of a member; "" where there is none."""
        if kind == "worker":
            return state.workers[name].addr if name in state.workers else ""
        return next((row.addr for row in self._cluster.election.masters() if row.name == name), "")

    def export(self) -> Answer:
        """Return all files as they are stored, secrets too."""
        state = self._cluster.state
        return plain(
            tasks={name: row.text for name, row in state.tasks.items()},
            sources={name: row.text for name, row in state.sources.items()},
            relayWorkers={name: [bound.worker] for name, bound in state.bounds.items()},
        )

    def template(self, name: str) -> TaskRow:
        """Return a template. Raises ClusterError CLUSTER-017."""
        found = self._cluster.state.templates.get(name)
        if found is None:
            raise ClusterError("CLUSTER-017", Where(), "no template has this name", {"task": name})
        return found

    def put_template(self, text: str, *, overwrite: bool) -> TaskRow:
        """Store a task file for later, under the task's name. Raises ClusterError CLUSTER-007; ConfigError."""
        name = parse_task(text).name
        with self._cluster.change() as writing:
            if not overwrite and name in writing.state.templates:
                raise ClusterError("CLUSTER-007", cause="as a template", values={"task": name})
            writing.put_template(TaskRow(name, kept(text)))
        return TaskRow(name, text)

    def drop_template(self, name: str) -> None:
        """Remove a template. Raises ClusterError CLUSTER-017 for an unknown name."""
        self.template(name)
        with self._cluster.change() as writing:
            writing.drop_template(name)


def _yaml(form: dict[str, Any]) -> str:
    return str(yaml.safe_dump(form, sort_keys=False, allow_unicode=True))
