"""Completion at the prompt: verbs, flags, and names that the master knows."""

from __future__ import annotations

import shlex
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from prompt_toolkit.completion import CompleteEvent, Completer, Completion, PathCompleter
from prompt_toolkit.document import Document

from unshard.api.verbs import ListMember, OperateSource, QueryStatus, Request
from unshard.ctl.session import CtlSession
from unshard.errors import UnshardError

_FRESH_SECONDS = 10.0
_ASK_SECONDS = 2.0
_KINDS = {"task": "task", "--source": "source", "source": "source", "--worker": "worker", "worker": "worker"}
_KINDS |= {"workers": "worker", "--name": "worker", "--owner": "source"}
_TAKES_FILES = frozenset({"task", "file", "files", "source"})


@dataclass(slots=True)
class NameCompletion:
    """The names of tasks, sources and workers for completion. There are none while no master answers.

    The master is asked at most every ten seconds.
    """

    session: CtlSession
    _kept: dict[str, tuple[float, tuple[str, ...]]] = field(default_factory=dict)

    def of(self, kind: str) -> tuple[str, ...]:
        """Return the names of that kind.

        They are asked for again after `_FRESH_SECONDS`; none where no master answers.
        """
        at, names = self._kept.get(kind, (float("-inf"), ()))
        if time.monotonic() - at < _FRESH_SECONDS:
            return names
        try:
            names = tuple(sorted(set(self._ask(kind))))
        except UnshardError:
            names = ()
        self._kept[kind] = (time.monotonic(), names)
        return names

    def _ask(self, kind: str) -> Iterator[str]:
        client = replace(self.session, seconds=_ASK_SECONDS).client
        requests: dict[str, Request] = {
            "task": QueryStatus(),
            "source": OperateSource(op="show"),
            "worker": ListMember(worker=True),
        }
        answer = client.ask(requests[kind])
        if kind == "task":
            yield from (str(one.get("taskName", "")) for one in answer.get("tasks") or ())
        elif kind == "source":
            yield from (str(one.get("source", "")) for one in answer.get("sources") or ())
        else:
            for part in answer.get("members") or ():
                yield from (str(one.get("name", "")) for one in part.get("worker", {}).get("workers") or ())


class VerbCompleter(Completer):
    """A completer that reads the command table itself, so that a verb that is added there is completed, too."""

    def __init__(self, table: Any, names: NameCompletion) -> None:
        self._table = table
        self._names = names
        self._paths = PathCompleter(expanduser=True)

    def get_completions(self, document: Document, complete_event: CompleteEvent) -> Iterable[Completion]:
        """Yield the verbs, flags or names that may follow before the cursor."""
        text = document.text_before_cursor
        try:
            words = shlex.split(text)
        except ValueError:  # within quotes: what stands there is no name
            return
        current = words.pop() if words and not text[-1:].isspace() else ""
        command, behind = self._command(words)
        previous = self._option(command, words[-1]) if words else None
        if previous is not None and not previous.is_flag:
            yield from self._of_kind(_KINDS.get(previous.opts[0], ""), current)
            return
        if current.startswith("-"):
            yield from _fitting(current, self._flags(command))
            return
        if verbs := getattr(command, "commands", None):
            shown = [name for name, verb in verbs.items() if not verb.hidden]
            more = ["exit", "help"] if command is self._table else []
            yield from _fitting(current, [*shown, *more])
            return
        argument = self._argument(command, behind)
        if argument is None:
            return
        yield from _fitting(current, (choice.value for choice in argument.shell_complete(None, current)))
        yield from self._of_kind(_KINDS.get(argument.name, ""), current)
        if argument.name in _TAKES_FILES:
            yield from self._paths.get_completions(Document(current), complete_event)

    def _command(self, words: Sequence[str]) -> tuple[Any, int]:
        """Return the verb that the words name, and how many of its arguments they have."""
        command, arguments, value = self._table, 0, False
        for word in words:
            if value:
                value = False
            elif word.startswith("-"):
                option = self._option(command, word)
                value = option is not None and not option.is_flag
            elif word in getattr(command, "commands", {}):
                command = command.commands[word]
            else:
                arguments += 1
        return command, arguments

    def _option(self, command: Any, word: str) -> Any:
        for param in (*command.params, *self._table.params):
            if word in param.opts and word.startswith("-"):
                return param
        return None

    def _flags(self, command: Any) -> list[str]:
        params = dict.fromkeys((*command.params, *self._table.params))
        return [*(name for param in params for name in param.opts if name.startswith("--")), "--help"]

    def _argument(self, command: Any, place: int) -> Any:
        arguments = [param for param in command.params if param.param_type_name == "argument"]
        if place < len(arguments):
            return arguments[place]
        return arguments[-1] if arguments and arguments[-1].nargs == -1 else None

    def _of_kind(self, kind: str, current: str) -> Iterator[Completion]:
        if kind:
            _, comma, last = current.rpartition(",")
            yield from _fitting(last if comma else current, self._names.of(kind))


def _fitting(current: str, words: Iterable[str]) -> Iterator[Completion]:
    return (Completion(word, -len(current)) for word in words if word and word.startswith(current))
