"""Child processes that never outlive the process that started them, even if that is killed with SIGKILL.

A guarded program runs under a tiny shell that reads from a pipe whose other end only we hold. When this process ends,
in whatever way, the kernel closes our end: the shell then kills the program and removes its folder. PR_SET_PDEATHSIG
would be simpler, but it fires when the *thread* that started the child ends, and servers are started from pools of
threads.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
from collections.abc import Sequence
from pathlib import Path

_SHELL = """
folder=$1; shift
"$@" >/dev/null 2>&1 &
child=$!
echo "$child"
if read -r _; then :; else kill -9 "$child" 2>/dev/null; wait "$child" 2>/dev/null; rm -rf -- "$folder"; fi
wait "$child" 2>/dev/null
"""


class GuardedProcess:
    """A running program that never outlives this process; its process id is `pid`.

    It ends by `signal` and `release`, or when this process ends.

    Args:
        command: program and arguments; its standard input and outputs are closed.
        folder: removed with its contents if this process dies without having ended the program.
    """

    def __init__(self, command: Sequence[str], folder: Path) -> None:
        self._shell = subprocess.Popen(
            ["/bin/sh", "-c", _SHELL, "guard", str(folder), *command],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,  # Ctrl-C is for us; the program ends when we end it
        )
        assert self._shell.stdout is not None
        self.pid = int(self._shell.stdout.readline())
        self._handle = os.pidfd_open(self.pid)

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the program; does nothing if it has ended."""
        try:
            signal.pidfd_send_signal(self._handle, number)
        except ProcessLookupError:
            return

    def ended(self, within_seconds: float = 0.0) -> bool:
        """Return whether the program has ended; waits at most that long for it."""
        ready, _, _ = select.select([self._handle], [], [], within_seconds)
        return bool(ready)

    def release(self) -> None:
        """End the guard after the program has ended; the folder stays. Blocks until both are gone."""
        assert self._shell.stdin is not None
        assert self._shell.stdout is not None
        self._shell.stdin.write(b"\n")
        self._shell.stdin.close()
        self._shell.stdout.close()
        self._shell.wait()
        os.close(self._handle)
