"""What can be done from the page: verbs of `ctl`, each with a form that asks first and shows the equal command."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import ValidationError

from unshard.api.verbs import REQUESTS, Request
from unshard.config.access import Role
from unshard.errors import ClusterError

Given = Mapping[str, str]
_Command = Callable[[Given], list[str]]


@dataclass(frozen=True, slots=True)
class FormField:
    """One field of an action's form. `kind`: `line`, `text`, `hidden`, or the choices of a list with `|` between."""

    name: str
    label: str
    kind: str = "hidden"
    help: str = ""

    @property
    def choices(self) -> list[str]:
        return self.kind.split("|") if "|" in self.kind else []


@dataclass(frozen=True, slots=True)
class PageAction:
    """One verb. `danger`: what could be lost; then the value of the field `typed` has to be typed in.

    `lists`: fields of the request that are lists, of which the form gives one value; `fixed`: fields of the request
    that the form does not give.
    """

    verb: str
    title: str
    effect: str
    fields: tuple[FormField, ...]
    command: _Command
    danger: str = ""
    typed: str = ""
    lists: tuple[str, ...] = ()
    fixed: tuple[tuple[str, Any], ...] = ()

    @property
    def role(self) -> Role:
        return Role(REQUESTS[self.verb].needs)

    def request(self, given: Given) -> Request:
        """The request of a filled form. Raises ClusterError CLUSTER-059 where a field does not fit."""
        body: dict[str, Any] = dict(self.fixed)
        for one in self.fields:
            value = given.get(one.name, "").replace("\r\n", "\n")
            if value:
                body[one.name] = [value] if one.name in self.lists else value
        try:
            return REQUESTS[self.verb].model_validate(body)
        except ValidationError as error:
            faults = [f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in error.errors()]
            raise ClusterError("CLUSTER-059", cause="; ".join(faults)) from None

    def equal_command(self, given: Given) -> str:
        """The line for a shell that does the same."""
        return "unshard ctl " + shlex.join(self.command(given))


def _flag(given: Given, flag: str, name: str) -> list[str]:
    return [flag, given[name]] if given.get(name) else []


def _of_task(verb: str) -> _Command:
    return lambda given: [verb, given.get("name", ""), *_flag(given, "-s", "sources")]


def _of_source(verb: str) -> _Command:
    return lambda given: [verb, "-s", given.get("sources", "")]


def _binlog(given: Given) -> list[str]:
    sqls = [given["sqls"]] if given.get("sqls") else []
    place = [*_flag(given, "-b", "binlog_pos"), *_flag(given, "-s", "sources")]
    return ["binlog", given.get("op", ""), given.get("task", ""), *sqls, *place]


def _unlock(given: Given) -> list[str]:
    return ["shard-ddl-lock", "unlock", given.get("id", ""), *_flag(given, "-o", "owner")]


_TASK = FormField("name", "Task")
_SOURCE = FormField("sources", "Source")
_ONE_SOURCE = (_SOURCE,)
_SUBTASK = (_TASK, _SOURCE)
_LISTS = ("sources", "sqls", "config")

_ALL = (
    PageAction("pause-task", "Pause", "It finishes the batch in hand and stands still until it is resumed.", _SUBTASK,
               _of_task("pause-task")),
    PageAction("resume-task", "Resume", "It goes on from its checkpoint; nothing is applied twice.", _SUBTASK,
               _of_task("resume-task")),
    PageAction("stop-task", "Stop", "It ends and the cluster forgets it.", _SUBTASK, _of_task("stop-task"),
               "The cluster forgets the task's file. What the target has on record stays; a source that deletes its "
               "binlogs meanwhile can't be followed further.", "name"),
    PageAction("binlog", "Skip or replace", "It decides what becomes of the place where the task has stopped.",
               (FormField("task", "Task"), _SOURCE, FormField("op", "What to do", "skip|replace"),
                FormField("binlog_pos", "Position", "line", "FILE:POS; empty: where the source has stopped."),
                FormField("sqls", "Statements in its place", "text", "Only for replace: DDL with the schema of every "
                          "table, separated by ;.")),
               _binlog, "What is skipped or replaced never gets into the target; both ends may differ from then on.",
               "task"),
    PageAction("shard-ddl-lock-unlock", "Unlock", "The DDL is settled without the sources that have not met it.",
               (FormField("id", "Lock"),
                FormField("owner", "Owner instead", "line", "The source that runs the DDL; empty: its owner.")),
               _unlock, "Shards that have not met the DDL keep another structure; their rows may not fit.", "id"),
    PageAction("pause-relay", "Pause the relay", "It reads no more of the source's binlog.", _ONE_SOURCE,
               _of_source("pause-relay")),
    PageAction("resume-relay", "Resume the relay", "It reads on.", _ONE_SOURCE, _of_source("resume-relay")),
    PageAction("transfer-source", "Move", "The source is served by another worker that is free.",
               (FormField("source", "Source"), FormField("worker", "Worker", "line")),
               lambda given: ["transfer-source", given.get("source", ""), given.get("worker", "")]),
    PageAction("offline-member", "Forget", "A member that is gone is taken from the list.",
               (FormField("type", "Kind"), FormField("name", "Name")),
               lambda given: ["offline-member", f"--{given.get('type', '')}", "-n", given.get("name", "")],
               "A member that still runs would register again, and its source may move.", "name"),
    PageAction("operate-source", "Add a source", "The source is checked and bound to a free worker.",
               (FormField("config", "Source file (YAML)", "text", "DM's format; see examples/source-1.yaml."),),
               lambda given: ["operate-source", "create", "SOURCE.yaml"], fixed=(("op", "create"),)),
    PageAction("check-task", "Check a task", "All checks before a start, nothing else.",
               (FormField("task", "Task file (YAML)", "text"),), lambda given: ["check-task", "TASK.yaml"]),
    PageAction("start-task", "Start a task", "The task is checked, then started on all of its sources.",
               (FormField("task", "Task file (YAML)", "text", "DM's format; see examples/minimal.yaml."),),
               lambda given: ["start-task", "TASK.yaml"]),
    PageAction("update-task", "Change a task", "The task's file is replaced. The task has to be paused.",
               (FormField("task", "Task file (YAML)", "text", "Passwords are shown as ******: write them again."),),
               lambda given: ["update-task", "TASK.yaml"]),
)  # fmt: skip

ACTIONS: Mapping[str, PageAction] = {
    one.verb: PageAction(
        one.verb, one.title, one.effect, one.fields, one.command, one.danger, one.typed, _LISTS, one.fixed
    )
    for one in _ALL
}
"""By the verb that it asks for."""
