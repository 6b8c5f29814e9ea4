"""`unshard ctl` at a prompt: each line is a verb of the same command table, with a history and completion."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import typer
from prompt_toolkit import PromptSession
from prompt_toolkit.history import FileHistory

from unshard.ctl.completion import NameCompletion, VerbCompleter
from unshard.ctl.session import CtlSession

_ENDS = frozenset({"exit", "quit"})
_SECRET = frozenset({"encrypt"})


def shell(table: Any, session: CtlSession, prompt: PromptSession[str] | None = None) -> None:
    """Read and run lines until `exit` or Ctrl-D. The error of a verb is printed, and the prompt is shown again."""
    reading = prompt or _prompt(table, session)
    while True:
        try:
            line = reading.prompt("» ")
        except KeyboardInterrupt:
            continue
        except EOFError:
            return
        try:
            words = shlex.split(line)
        except ValueError as error:
            typer.echo(f"this line can't be taken apart: {str(error).lower()}", err=True)
            continue
        if not words:
            continue
        if words[0] in _ENDS:
            return
        carry_out(table, words, session)


def piped(table: Any, session: CtlSession, lines: Iterable[str]) -> int | None:
    """Run lines that come by a pipe, until `exit` or their end; one that fails doesn't keep the rest from it.

    The largest of their exit codes; None where there was no verb at all. Raises ValueError for open quotes.
    """
    codes = []
    for line in lines:
        words = shlex.split(line, comments=True)
        if words and words[0] in _ENDS:
            break
        if words:
            codes.append(carry_out(table, words, session))
    return max(codes, default=None)


def carry_out(table: Any, words: list[str], session: CtlSession) -> int:
    """Run one line, as `unshard ctl` itself would: it prints errors and wrong use. Returns its exit code."""
    try:
        table.main(args=words, prog_name="unshard ctl", obj=session)
    except SystemExit as end:
        return end.code if isinstance(end.code, int) else 1
    return 0


def history_path(variables: Mapping[str, str] = os.environ) -> Path:
    """Return the path of the history: below $XDG_STATE_HOME, else in the home folder."""
    state = variables.get("XDG_STATE_HOME")
    return (Path(state) if state else Path.home() / ".local" / "state") / "unshard" / "ctl_history"


class DiscreetHistory(FileHistory):
    """A history file that only its owner can read, without the lines that contain a password."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        os.close(os.open(path, os.O_WRONLY | os.O_CREAT, 0o600))
        super().__init__(path)

    def append_string(self, string: str) -> None:
        """Append a line to the history, unless it contains a verb that takes a secret."""
        if not _SECRET.intersection(string.split()):
            super().append_string(string)


def _prompt(table: Any, session: CtlSession) -> PromptSession[str]:
    completer = VerbCompleter(table, NameCompletion(session))
    try:
        return PromptSession(history=DiscreetHistory(history_path()), completer=completer, complete_in_thread=True)
    except OSError:  # a home that can't be written to: without a history then
        return PromptSession(completer=completer, complete_in_thread=True)
