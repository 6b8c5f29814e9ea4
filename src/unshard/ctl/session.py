"""The common options of all `unshard ctl` commands, and the end of a command: its printed answer and its exit code."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import typer

from unshard.config.listener import LinkSecurity
from unshard.ctl.runs import run_here, runs_here
from unshard.ctl.words import is_file
from unshard.errors import UnshardError, told_together

if TYPE_CHECKING:
    from unshard.api.verbs import Request
    from unshard.ctl.client import MasterClient

FAILED = 1
WRONG_USE = "CLUSTER-047"
ADDRESS_VARIABLES = ("UNSHARD_MASTER_ADDR", "DM_MASTER_ADDR")
TOKEN_VARIABLE = "UNSHARD_TOKEN"
DEFAULT_SECONDS = 600.0
_T = TypeVar("_T")


@dataclass(frozen=True, slots=True)
class CtlSession:
    """The settings of a `ctl` call: the masters, how to connect to them, the sources, the form of answers.

    `sources` are the words of `-s` as they were typed: ids, or files of sources.
    """

    masters: tuple[str, ...] = ()
    seconds: float = DEFAULT_SECONDS
    security: LinkSecurity = field(default_factory=LinkSecurity)
    sources: tuple[str, ...] = ()
    as_json: bool = False

    @property
    def client(self) -> MasterClient:
        """Client of the masters that were named, else of the `unshard run` of this folder.

        Raises ClusterError CLUSTER-047 where several run here.
        """
        from unshard.ctl.client import MasterClient  # what speaks HTTP is not loaded where files are enough

        return MasterClient(self.masters or run_here(), self.seconds, self.security)

    def direct(self, task: str | Path) -> bool:
        """Return whether files are enough: no master was named, and files of sources were, or no run is here."""
        if self.masters or not is_file(str(task)):
            return False
        return any(is_file(source) for source in self.sources) or not runs_here()


def masters_of_environment(variables: Mapping[str, str] = os.environ) -> tuple[str, ...]:
    """Return the masters that the first set variable of `ADDRESS_VARIABLES` names."""
    return addresses(next((variables[name] for name in ADDRESS_VARIABLES if variables.get(name)), ""))


def token_of_environment(variables: Mapping[str, str] = os.environ) -> str:
    """Return the token's reference, if the environment has one."""
    return f"env:{TOKEN_VARIABLE}" if variables.get(TOKEN_VARIABLE) else ""


def addresses(text: str) -> tuple[str, ...]:
    """Return the parts of `host:port,host:port`."""
    return tuple(word for part in text.split(",") if (word := part.strip()))


def ask(session: CtlSession, request: Request) -> None:
    """Put a request to a master, show the answer; exit code 1 where it is no."""
    conclude(session, request.verb, lambda: session.client.ask(request))


def conclude(session: CtlSession, verb: str, work: Callable[[], dict[str, Any]]) -> None:
    """Show what `work` answers. An error is printed on stderr: exit code 2 for wrong use, else 1."""
    answer = guarded(work)
    from rich.console import Console

    from unshard.ctl.tables import rendered

    console = Console()
    if session.as_json or not console.is_terminal:
        typer.echo(json.dumps(answer, indent=4, ensure_ascii=False))
    else:
        for part in rendered(verb, answer):
            console.print(part, markup=False, highlight=False, soft_wrap=isinstance(part, str))
    if not answer.get("result"):
        raise typer.Exit(FAILED)


def guarded(work: Callable[[], _T]) -> _T:
    """Return the result of `work`. An UnshardError becomes its text on stderr and an exit code."""
    try:
        return work()
    except UnshardError as error:
        if error.code == WRONG_USE:
            raise typer.BadParameter(error.cause) from None
        typer.echo(str(error), err=True)
        raise typer.Exit(FAILED) from None
    except ExceptionGroup as group:
        typer.echo(told_together(group), err=True)
        raise typer.Exit(FAILED) from None
