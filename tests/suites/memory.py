"""A folder in memory for what the tests of a step write: data of servers, dumps, relay logs.

Servers sync their logs at each commit; on a disk, `make test` waits for that a fifth of its time. A process that is
killed loses as little in memory as on a disk.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

MEMORY = Path("/dev/shm")
"""Where Linux keeps files in memory."""

NEEDED = 10 << 30
"""The bytes that have to be free. The tests of a step of `make test` write up to 3 GiB, and their processes take 4."""

_NAME, _FRESH = "unshard-tests-", "fresh-unshard-tests-"


def free() -> int:
    """Return how many bytes can be written into memory; 0 where the system has no such folder."""
    if not MEMORY.is_dir() or not os.access(MEMORY, os.W_OK):
        return 0
    place = os.statvfs(MEMORY)
    told = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    return min(place.f_bavail * place.f_frsize, int(told["MemAvailable"].split()[0]) << 10)


@contextmanager
def memory_folder(parent: Path) -> Iterator[Path]:
    """Make a folder for the temporary files of a step, and remove those that earlier ones have left.

    The caller removes it; one that is left serves to look into a failure, until the next call by any checkout.
    """
    for left in parent.glob(f"{_NAME}*"):
        _remove_unless_used(left)
    fresh = Path(tempfile.mkdtemp(prefix=_FRESH, dir=parent))
    held = os.open(fresh, os.O_RDONLY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        folder = fresh.rename(parent / fresh.name.replace(_FRESH, _NAME, 1))  # locked when others first see it
        yield folder
    finally:
        os.close(held)


def _remove_unless_used(folder: Path) -> None:
    held = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(folder, ignore_errors=True)
    except BlockingIOError:
        return
    finally:
        os.close(held)
