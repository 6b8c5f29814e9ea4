"""The stored files of tasks, sources and members: shown, exported; templates of tasks.

A file is stored with its passwords encrypted where this process has a key; all else is as the user wrote it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import yaml

from unshard.api.verbs import Answer, Config, plain
from unshard.config.files import parse_task
from unshard.config.redact import hidden_text
from unshard.config.secret import HIDDEN, sealed
from unshard.errors import ClusterError, Where
from unshard.master.cluster import Cluster
from unshard.master.state import State, TaskRow, known


def kept(text: str) -> str:
    """Return the YAML text of a task or source, comments and all, with its passwords in the stored form."""
    node = yaml.compose(text, Loader=yaml.SafeLoader)
    assert node is not None, "the text is a file that was read"
    places = {(one.start_mark.index, one.end_mark.index): one.value for one in _passwords(node, []) if one.value}
    for (begin, end), value in sorted(places.items(), reverse=True):
        new = sealed(value)
        if new != value:
            text = f"{text[:begin]}'{new}'{text[end:]}"
    return text


def _passwords(node: yaml.Node, seen: list[yaml.Node]) -> Iterator[yaml.ScalarNode]:
    """Yield the values of keys `password`; those that YAML aliases share, once."""
    if any(node is one for one in seen):
        return
    seen.append(node)
    if isinstance(node, yaml.SequenceNode):
        for item in node.value:
            yield from _passwords(item, seen)
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            if isinstance(value, yaml.ScalarNode) and isinstance(key, yaml.ScalarNode) and key.value == "password":
                yield value
            else:
                yield from _passwords(value, seen)


def with_kept_password(draft: str, stored: str) -> str:
    """Return a draft of a task's file with the stored password of `target-database` where it has `******`.

    Raises ClusterError CLUSTER-016 where host, port or user are others than the stored ones, so that a password goes to
    nobody whom it was not written for, and where another secret is `******`.
    """
    try:
        node, old = (yaml.compose(text, Loader=yaml.SafeLoader) for text in (draft, stored))
    except yaml.YAMLError:
        return draft  # its reader tells what is wrong, and where
    login, known = _login(node), _login(old)
    mask = login.get("password")
    if mask is not None and mask.value == HIDDEN:
        if "password" not in known or any(_told(login, key) != _told(known, key) for key in ("host", "port", "user")):
            why = f"target-database has another host, port or user: write its password in the place of {HIDDEN}"
            raise ClusterError("CLUSTER-016", cause=why)
        secret = known["password"].value.replace("'", "''")
        draft = f"{draft[: mask.start_mark.index]}'{secret}'{draft[mask.end_mark.index :]}"
    if HIDDEN in draft:
        why = f"the draft has {HIDDEN} elsewhere than as the password of target-database: write what stands there"
        raise ClusterError("CLUSTER-016", cause=why)
    return draft


def _login(node: yaml.Node | None) -> dict[str, yaml.ScalarNode]:
    """Return the plain values of `target-database`."""
    found = _below(node).get("target-database")
    return {key: value for key, value in _below(found).items() if isinstance(value, yaml.ScalarNode)}


def _below(node: yaml.Node | None) -> dict[str, yaml.Node]:
    pairs = node.value if isinstance(node, yaml.MappingNode) else ()
    return {key.value: value for key, value in pairs if isinstance(key, yaml.ScalarNode)}


def _told(login: dict[str, yaml.ScalarNode], key: str) -> str:
    return login[key].value if key in login else ""


SettingsOf = Callable[[str], dict[str, Any]]
"""Returns the settings of the process at an address. Raises ClusterError CLUSTER-039."""


class ConfigFiles:
    """`own`: the settings of this master; `settings_of`: those of other members. Both without secrets."""

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
