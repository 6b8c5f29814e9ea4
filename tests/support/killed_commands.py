"""Commands as a user types them, killed or frozen at a crash point (`unshard.crash_point`)."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any

import psutil

from support.task_runs import UNSHARD
from support.waiting import PATIENCE_SECONDS, wait_until
from unshard.crash_point import AT, BY

_SECONDS = 2 * PATIENCE_SECONDS


@dataclass(frozen=True, slots=True)
class TypedCommand:
    """`unshard` with these words in `folder`. Each run is in a process group of its own, which ends with it."""

    folder: Path
    words: Sequence[str]

    def ends(self, *more: str) -> subprocess.CompletedProcess[str]:
        """Run it to its end."""
        with self._started(more, {}) as child:
            code = child.wait(_SECONDS)
        return subprocess.CompletedProcess(child.args, code, self._text("stdout"), self._text("stderr"))

    def dies(self, place: str, *more: str) -> str:
        """Run it until it is killed at that crash point, `name` or `name:nth`. Return what it said on stderr."""
        with self._started(more, {AT: place}) as child:
            code = child.wait(_SECONDS)
        told = self._text("stderr")
        assert code == -signal.SIGKILL, f"{place}: {code}\n{self._text('stdout')}{told}"
        return told

    @contextmanager
    def frozen(self, place: str, *more: str) -> Iterator[list[subprocess.CompletedProcess[str]]]:
        """Run it until it freezes at that crash point. It goes on after the context, and its end is in the list."""
        found: list[subprocess.CompletedProcess[str]] = []
        with self._started(more, {AT: place, BY: "SIGSTOP"}) as child:
            process = psutil.Process(child.pid)
            stopped = lambda: child.poll() is not None or process.status() == psutil.STATUS_STOPPED  # noqa: E731
            wait_until(stopped, f"frozen at {place}", _SECONDS, lambda: self._text("stderr"))
            assert child.poll() is None, f"it has ended before {place}:\n{self._text('stderr')}"
            yield found
            child.send_signal(signal.SIGCONT)
            code = child.wait(_SECONDS)
        found.append(subprocess.CompletedProcess(child.args, code, self._text("stdout"), self._text("stderr")))

    @contextmanager
    def _started(self, more: Sequence[str], environment: dict[str, str]) -> Iterator[subprocess.Popen[bytes]]:
        with self._sink("stdout") as out, self._sink("stderr") as err:
            child = subprocess.Popen(
                [UNSHARD, *self.words, *more],
                cwd=self.folder,
                env={**os.environ, **environment},
                stdin=subprocess.DEVNULL,
                stdout=out,
                stderr=err,
                start_new_session=True,
            )
            try:
                yield child
            finally:
                with suppress(ProcessLookupError):  # nothing was left
                    os.killpg(child.pid, signal.SIGKILL)
                child.wait()

    def _sink(self, name: str) -> IO[Any]:
        return (self.folder / f"{self.words[0]}.{name}").open("wb")

    def _text(self, name: str) -> str:
        return (self.folder / f"{self.words[0]}.{name}").read_text(errors="replace")
