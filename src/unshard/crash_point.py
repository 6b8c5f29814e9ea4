"""Named places where a test may let the process die, as a power cut would, or freeze, as a paused machine does.

`reach("batch-planned")` is called just before or just after a durable write. It does nothing unless one of these
environment variables asks for it:

* `UNSHARD_CRASH_AT=name` or `name:nth` — the process is killed with SIGKILL when it reaches that name for the nth time
  (first by default; each process counts for itself).
* `UNSHARD_CRASH_MARKER=path` — only one process of all that share the path dies: the one that creates the file. The
  next run, with the same environment, goes on past the place.
* `UNSHARD_CRASH_ORDER=path` — the same at the place that this file names; a test may write it at any time. The next
  process to reach the place, of all that share the path, takes the order: it renames the file to `path.pid`, with its
  process id.
* `UNSHARD_CRASH_BY=SIGSTOP` — it is sent that signal instead.
* `UNSHARD_CRASH_PID=pid` — this process dies too, and first: the driver, when a worker reaches the place. With SIGKILL,
  all processes between the two are killed as well, so that a JVM that outlives its driver can't repeat the work.
"""

from __future__ import annotations

import os
import signal
import threading
from collections import Counter
from contextlib import suppress
from pathlib import Path

AT = "UNSHARD_CRASH_AT"
ORDER = "UNSHARD_CRASH_ORDER"
MARKER = "UNSHARD_CRASH_MARKER"
BY = "UNSHARD_CRASH_BY"
PID = "UNSHARD_CRASH_PID"

_reached: Counter[str] = Counter()


def reach(name: str) -> None:
    """Kill this process if the environment names this place and the count is right; else return at once.

    Cheap enough for once a chunk or a batch, not for once a row.
    """
    if _is_counted(name) or _is_ordered(name):
        _die()


def _is_counted(name: str) -> bool:
    place, _, nth = os.environ.get(AT, "").partition(":")
    if place != name:
        return False
    _reached[name] += 1
    return _reached[name] == int(nth or 1) and _first_of_all()


def _is_ordered(name: str) -> bool:
    order = os.environ.get(ORDER)
    if not order:
        return False
    with suppress(FileNotFoundError):  # none is given, or another process has taken it just now
        if Path(order).read_text() == name:
            Path(order).rename(f"{order}.{os.getpid()}")
            return True
    return False


def _first_of_all() -> bool:
    marker = os.environ.get(MARKER)
    if not marker:
        return True
    try:
        os.close(os.open(marker, os.O_CREAT | os.O_EXCL | os.O_WRONLY))
    except FileExistsError:
        return False
    return True


def _die() -> None:
    number = signal.Signals[os.environ.get(BY) or "SIGKILL"]
    other = os.environ.get(PID)
    if other and int(other) != os.getpid():
        between = _between(int(other)) if number == signal.SIGKILL else []
        for process in (int(other), *between):
            with suppress(ProcessLookupError):  # dead already, which is what was wanted
                os.kill(process, number)
    # to this very thread: SIGSTOP to a process is its main thread's to heed, and until then the others run on
    signal.pthread_kill(threading.get_ident(), number)


def _between(ancestor: int) -> list[int]:
    """Return the processes from below the ancestor down to this one's parent; none where it isn't an ancestor."""
    line: list[int] = []
    parent = os.getppid()
    while parent != ancestor:
        if parent <= 1:
            return []
        line.insert(0, parent)
        try:
            status = Path(f"/proc/{parent}/stat").read_text()
        except FileNotFoundError:  # it has ended, and whose child it was can't be told
            return []
        parent = int(status.rpartition(")")[2].split()[1])
    return line
