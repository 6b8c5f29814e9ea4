"""The actions of the page: verbs of `ctl`, each with a form that asks first and shows the equal command."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from pydantic import ValidationError

from unshard.api.verbs import REQUESTS, Request
from unshard.config.access import Role
from unshard.errors import ClusterError

Given = Mapping[str, str]
_UNDER_WAY = "CLUSTER-010"
"""The error of a source that has not reached the state in the time that the master waits."""
_Command = Callable[[Given], list[str]]


@dataclass(frozen=True, slots=True)
class FormField:
    """One field of an action's form.

    Args:
        kind: `line`, `text`, `hidden`, `worker`, or choices with `|` between.
        empty: what an empty value of a hidden field means.
        stands_for: the word that the command shows in place of a missing value which the verb needs.
        file: the name that the command shows for the text of a file; the command never contains the text.
    """

    name: str
    label: str
    kind: str = "hidden"
    help: str = ""
    empty: str = "all"
    stands_for: str = ""
    file: str = ""

    @property
    def choices(self) -> list[str]:
        """Values to choose from; none for a field of free text."""
        return self.kind.split("|") if "|" in self.kind else []


@dataclass(frozen=True, slots=True)
class PageAction:
    """An action of the page: one verb with its form.

    Args:
        danger: what could be lost by it; the user then has to type the value of the field `typed`.
        lists: fields of the request that are lists, of which the form gives one value.
        fixed: fields of the request that the form does not give, with their values.
        otherwise: a field that is true if another field is empty: the names of both.
        key: the action's name in addresses; the verb itself where it has only one action.
        beside: actions that can be taken instead.
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
    otherwise: tuple[str, str] = ("", "")
    key: str = ""
    beside: tuple[str, ...] = ()

    @property
    def name(self) -> str:
        """Name of the action, in paths and templates."""
        return self.key or self.verb

    @property
    def role(self) -> Role:
        """Role that the action's request needs."""
        return Role(REQUESTS[self.verb].needs)

    def filled(self, given: Given, workers: Sequence[str] = ()) -> dict[str, str]:
        """Return the values of the form's fields; of a choice that is not made yet, the first.

        `workers`: those that can take a source.
        """
        found = {}
        for one in self.fields:
            choices = list(workers) if one.kind == "worker" else one.choices
            found[one.name] = given.get(one.name, "") or (choices[0] if choices else "")
        return found

    def request(self, given: Given) -> Request:
        """Return the request of a filled form. Raises ClusterError CLUSTER-059 where a field does not fit."""
        body: dict[str, Any] = dict(self.fixed)
        for one in self.fields:
            value = given.get(one.name, "").replace("\r\n", "\n")
            if value:
                body[one.name] = [value] if one.name in self.lists else value
        implied, empty = self.otherwise
        if implied and empty not in body:
            body[implied] = True
        try:
            return REQUESTS[self.verb].model_validate(body)
        except ValidationError as error:
            faults = [f"{'.'.join(map(str, fault['loc']))}: {fault['msg']}" for fault in error.errors()]
            raise ClusterError("CLUSTER-059", cause="; ".join(faults)) from None

    def equal_command(self, given: Given) -> str:
        """Return the shell command that does the same. A value that is still missing has a word in its place."""
        told = {one.name: one.file or given.get(one.name, "") or one.stands_for for one in self.fields}
        return "unshard ctl " + shlex.join(self.command({name: _normal(text) for name, text in told.items()}))


def is_under_way(answer: Mapping[str, Any]) -> bool:
    """Return whether a verb is carried out, but not yet on all sources; the master waits for it no longer."""
    missing = [one for one in answer.get("sources") or () if not one.get("result")]
    return bool(missing) and all(str(one.get("msg", "")).startswith(_UNDER_WAY) for one in missing)


def _normal(text: str) -> str:
    return text.replace("\r\n", "\n")


def _flag(given: Given, flag: str, name: str) -> list[str]:
    return [flag, given[name]] if given.get(name) else []


def _said(verb: Sequence[str], words: Sequence[str], *flags: str) -> list[str]:
    """Return the words of a command, also where one of them looks like a flag."""
    if any(word.startswith("-") for word in words):
        return [*verb, *flags, "--", *words]
    return [*verb, *words, *flags]


def _of_task(verb: str) -> _Command:
    return lambda given: _said([verb], [given["name"]], *_flag(given, "-s", "sources"))


def _of_source(verb: str) -> _Command:
    return lambda given: [verb, "-s", given["sources"]]


def _of_file(*verb: str) -> _Command:
    return lambda given: [*verb, given["task"] if "task" in given else given["config"]]


def _unlock(given: Given) -> list[str]:
    return _said(["shard-ddl-lock", "unlock"], [given["id"]], *_flag(given, "-o", "owner"))


def _of_shard(action: str, key: str, title: str, effect: str, danger: str) -> PageAction:
    """Return the decision of a human about one shard that waits in optimistic mode."""

    def command(given: Given) -> list[str]:
        shard = ["-s", given["sources"], "--action", action, "--database", given["database"], "--table", given["table"]]
        return _said(["shard-ddl-lock", "unlock"], [given["id"]], *shard)

    names = (
        FormField("database", "Schema of the shard", "line", stands_for="SCHEMA"),
        FormField("table", "Table of the shard", "line", stands_for="TABLE"),
    )
    return PageAction(
        "shard-ddl-lock-unlock", title, effect, (_LOCK, _SOURCE, *names), command, danger, "id",
        fixed=(("action", action),), key=key, beside=("shard-run", "shard-leave-out"),
    )  # fmt: skip


def _of_binlog(op: str, title: str, effect: str, danger: str = "", *fields: FormField) -> PageAction:
    def command(given: Given) -> list[str]:
        sqls = [given["sqls"]] if "sqls" in given else []
        place = [*_flag(given, "-b", "binlog_pos"), *_flag(given, "-s", "sources")]
        return _said(["binlog", op], [given["task"], *sqls], *place)

    place = FormField("binlog_pos", "Position", "line", "FILE:POS. If empty: where the source has stopped.")
    return PageAction(
        "binlog", title, effect, (FormField("task", "Task"), _SOURCE, *fields, place), command, danger,
        "task" if danger else "", fixed=(("op", op),), key=f"binlog-{op}", beside=_BINLOG,
    )  # fmt: skip


def _validation(op: str) -> _Command:
    def command(given: Given) -> list[str]:
        settles, number = op.endswith("-error"), given.get("id", "")
        flags = [*_flag(given, "--mode", "mode"), *_flag(given, "-s", "sources")]
        words = [given["task"], *([number] if number else [])]
        return _said(["validation", op], words, *(["--all"] if settles and not number else []), *flags)

    return command


def _of_validation(
    op: str, title: str, effect: str, *fields: FormField, danger: str = "", typed: str = ""
) -> PageAction:
    told = (FormField("task", "Task"), _SOURCE, *fields)
    implied = ("all", "id") if op.endswith("-error") else ("", "")
    return PageAction(
        "validation", title, effect, told, _validation(op), danger, typed, fixed=(("op", op),), otherwise=implied,
        key=f"validation-{op}",
    )  # fmt: skip


_LOCK = FormField("id", "Lock")
_TASK = FormField("name", "Task")
_SOURCE = FormField("sources", "Source")
_ONE_SOURCE = (_SOURCE,)
_SUBTASK = (_TASK, _SOURCE)
_ERROR = FormField("id", "Error", empty="all new ones")
_BINLOG = ("binlog-skip", "binlog-replace", "binlog-inject", "binlog-revert")
_MAY_DIFFER = "Source and target may differ from then on."
_STATEMENTS = FormField(
    "sqls", "Statements", "text", "DDL statements, separated by ;. Write the schema before each table, with the "
    "source's names.", stands_for="STATEMENTS",
)  # fmt: skip
_TASK_FILE = "Task file (YAML)"
_LISTS = ("sources", "sqls", "config")

_ALL = (
    PageAction("pause-task", "Pause", "The task finishes its current batch and stops until you resume it.", _SUBTASK,
               _of_task("pause-task")),
    PageAction("resume-task", "Resume", "The task goes on from its checkpoint. Nothing is applied twice.", _SUBTASK,
               _of_task("resume-task")),
    PageAction("stop-task", "Stop", "The task ends on all of its sources and is removed from the cluster.", _SUBTASK,
               _of_task("stop-task"),
               "The cluster deletes the task's file. The checkpoint in the target remains, so the same file can start "
               "the task again; but only as long as the sources keep the binlogs from there on.", "name"),
    _of_binlog("skip", "Skip", "The statement or row change at which the task has stopped is not applied. Then resume "
               "the task.", f"What you skip is never applied to the target. {_MAY_DIFFER}"),
    _of_binlog("replace", "Replace", "Your statements are run in place of the one at which the task has stopped. Then "
               "resume the task.", f"The statement itself is never run in the target. {_MAY_DIFFER}", _STATEMENTS),
    _of_binlog("inject", "Inject", "Your statements are run first, then the statement at which the task has stopped. "
               "Then resume the task.", f"Your statements are run in the target alone. {_MAY_DIFFER}", _STATEMENTS),
    _of_binlog("revert", "Revert", "What was given for the position is withdrawn, unless it is used already."),
    PageAction("shard-ddl-lock-unlock", "Unlock",
               "The owner runs the DDL in the target, without waiting for the shards that have not run it.",
               (_LOCK,
                FormField("owner", "Other owner", "line", "The source that runs the DDL. If empty: the owner of the "
                          "lock.")),
               _unlock, "Shards that have not run the DDL keep their old structure. Their rows may not fit the target.",
               "id"),
    _of_shard("exec", "shard-run", "Run the DDL", "The DDL of this shard is run in the target, although its rows there "
              "have other values in the columns that it adds. Then set the values there as the source has them.",
              "Rows of the shard that are in the target differ from those of the source until you set them."),
    _of_shard("skip", "shard-leave-out", "Leave the DDL out", "The DDL of this shard is not run in the target, which "
              "takes the rows of the shard as far as it has their columns.",
              f"The target never gets this DDL of the shard. {_MAY_DIFFER}"),
    PageAction("pause-relay", "Pause the relay", "The relay stops reading the source's binlog until you resume it.",
               _ONE_SOURCE, _of_source("pause-relay")),
    PageAction("resume-relay", "Resume the relay", "The relay goes on reading the source's binlog.", _ONE_SOURCE,
               _of_source("resume-relay")),
    PageAction("transfer-source", "Move", "The source moves to another worker, which must be free.",
               (FormField("source", "Source"), FormField("worker", "To worker", "worker", stands_for="WORKER")),
               lambda given: _said(["transfer-source"], [given["source"], given["worker"]])),
    PageAction("offline-member", "Remove", "A member that will not come back is removed from the list.",
               (FormField("type", "Kind"), FormField("name", "Name")),
               lambda given: ["offline-member", f"--{given['type']}", "-n", given["name"]],
               "If the member still runs, it registers again, and its source may move meanwhile.", "name"),
    PageAction("operate-source", "Add a source", "The source is checked, then bound to a free worker.",
               (FormField("config", "Source file (YAML)", "text", "In DM's format, as examples/source-1.yaml.",
                          file="SOURCE.yaml"),),
               _of_file("operate-source", "create"), fixed=(("op", "create"),)),
    PageAction("check-task", "Check a task file", "All checks run that precede a start. Nothing is started or changed.",
               (FormField("task", _TASK_FILE, "text", file="TASK.yaml"),), _of_file("check-task")),
    PageAction("start-task", "Start a task", "The task is checked, then started on all of its sources.",
               (FormField("task", _TASK_FILE, "text", "In DM's format, as examples/minimal.yaml.", file="TASK.yaml"),),
               _of_file("start-task")),
    PageAction("update-task", "Change a task", "The task's file is replaced. The task has to be paused.",
               (FormField("task", _TASK_FILE, "text", "Passwords are shown as ******: type them again.",
                          file="TASK.yaml"),), _of_file("update-task")),
    _of_validation("start", "Start the validator", "The validator compares the rows that change from now on, and those "
                   "that an earlier validator left.",
                   FormField("mode", "Mode", "full|fast", "full compares every column; fast only looks whether the row "
                             "exists.")),
    _of_validation("stop", "Stop the validator", "Rows that change from now on are not compared. Rows that were found "
                   "to differ stay in the records."),
    _of_validation("ignore-error", "Ignore", "The row may differ. It is compared again only if it changes.", _ERROR),
    _of_validation("resolve-error", "Resolve", "Mark the row as corrected. A row that is found equal later is "
                   "marked without this.", _ERROR),
    _of_validation("clear-error", "Clear", "The entry is deleted from the records. No row is changed.",
                   FormField("id", "Error", empty="all, including ignored and resolved ones"),
                   danger="A deleted entry is not reported again unless the row changes.",
                   typed="task"),
)  # fmt: skip

ACTIONS: Mapping[str, PageAction] = {one.name: replace(one, lists=_LISTS) for one in _ALL}
"""By name."""
