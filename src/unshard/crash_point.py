"""Named places where a test may let the process die, as a power cut would, or freeze, as a paused machine does.

`reach("batch-planned")` stands just before or just after a durable write. It does nothing, unless the environment asks:

* `UNSHARD_CRASH_AT=name` or `name:nth` — the process is killed with SIGKILL when it reaches that name for the nth time
  (first by default; each process counts for itself).
* `UNSHARD_CRASH_MARKER=path` — only one process of all that share the path dies: the one that creates the file. The
  next run, with the same environment, goes on past the place.
* `UNSHARD_CRASH_BY=SIGSTOP` — it is sent that signal instead.
* `UNSHARD_CRASH_PID=pid` — this process dies too, and first: the driver, when a worker reaches the place.
"""

from __future__ import annotations

import os
import signal
from collections import Counter
from contextlib import suppress

AT = "UNSHARD_CRASH_AT"
MARKER = "UNSHARD_CRASH_MARKER"
BY = "UNSHARD_CRASH_BY"
PID = "UNSHARD_CRASH_PID"

_reached: Counter[str] = Counter()


def reach(name: str) -> None:
    """Die here if the environment names this place and the count is right; else return at once.

    Cheap enough for once a chunk or a batch, not for once a row.
    """
    wanted = os.environ.get(AT)
    if not wanted:
        return
    place, _, nth = wanted.partition(":")
    if place != name:
        return
    _reached[name] += 1
    if _reached[name] == int(nth or 1) and _first_of_all():
        _die()


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
        with suppress(ProcessLookupError):  # dead already, which is what was wanted
            os.kill(int(other), number)
    os.kill(os.getpid(), number)
