"""A folder in memory for what the tests of a step write: data of servers, dumps, relay logs.

Servers sync their logs at each commit. On a disk, the steps with servers take an eighth to a quarter longer. A process
that is killed loses as little in memory as on a disk.
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
"""The bytes that have to be free: a step of `make test` has written 2.6 GiB; the rest is for processes, also others."""

_NAME, _FRESH = "unshard-tests-", "fresh-unshard-tests-"


def free(parent: Path) -> int:
    """Return how many bytes can be written there, which is in memory; 0 where the system has no such folder."""
    if not parent.is_dir() or not os.access(parent, os.W_OK):
        return 0
    place = os.statvfs(parent)
    told = dict(line.split(":") for line in Path("/proc/meminfo").read_text().splitlines())
    return min(place.f_bavail * place.f_frsize, int(told["MemAvailable"].split()[0]) << 10)


@contextmanager
def memory_folder(parent: Path) -> Iterator[Path]:
    """Make a folder for the temporary files of a step. It counts as used until the end of the block.

    The caller removes it. One that is left serves to look into a failure, until `remove_left` is called.
    """
    fresh = Path(tempfile.mkdtemp(prefix=_FRESH, dir=parent))
    held = os.open(fresh, os.O_RDONLY)
    try:
        fcntl.flock(held, fcntl.LOCK_EX)
        folder = fresh.rename(parent / fresh.name.replace(_FRESH, _NAME, 1))  # locked when others first see it
        yield folder
    finally:
        os.close(held)


def remove_left(parent: Path) -> None:
    """Remove the folders that earlier steps of this user have left, of any checkout."""
    for folder in parent.glob(f"{_NAME}*"):
        try:
            held = os.open(folder, os.O_RDONLY)
        except (FileNotFoundError, PermissionError):  # removed by another run at this moment, or of another user
            continue
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            shutil.rmtree(folder, ignore_errors=True)
        except BlockingIOError:  # in use
            continue
        finally:
            os.close(held)
