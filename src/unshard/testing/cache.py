"""The cache of what is fetched or made once for a machine and user: servers, empty data of servers, compiled kernels.

It is the folder `unshard` in the folder that XDG_CACHE_HOME names, else in `~/.cache`. The name of an entry tells what
it was made of. An entry is never changed, only removed. `tools/cache` has the same rules for shell programs.

This module needs no library and nothing else of Unshard: `setup.py` imports it too.
"""

from __future__ import annotations

import fcntl
import hashlib
import os
import re
import shutil
import tempfile
from collections.abc import Callable
from functools import cache
from pathlib import Path

CHECKOUT = Path(__file__).parents[3]
"""The folder of Unshard's sources, if this module is in one; an installed Unshard has none."""

_PINNED = CHECKOUT / "tools" / "servers.lock"


def cache_folder() -> Path:
    """Return the folder of the cache, which may not exist."""
    return Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache") / "unshard"


def short_sum(content: bytes) -> str:
    """Return the first digits of the SHA-256 of the content, which the names of entries end with."""
    return hashlib.sha256(content).hexdigest()[:12]


def made_once(entry: Path, make: Callable[[Path], None]) -> Path:
    """Return the folder `entry`, which `make` fills if it is missing.

    `make` gets an empty folder beside it. The entry is there whole or not at all, also if the process is killed. If
    several processes ask for it at the same time, one makes it and the others wait.
    """
    if entry.is_dir():
        return entry
    entry.parent.mkdir(parents=True, exist_ok=True)
    with entry.with_name(f"{entry.name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if entry.is_dir():
            return entry
        for left in entry.parent.glob(f"{entry.name}.part.*"):  # by a process that was killed
            shutil.rmtree(left, ignore_errors=True)
        fresh = Path(tempfile.mkdtemp(prefix=f"{entry.name}.part.", dir=entry.parent))
        try:
            make(fresh)
            fresh.rename(entry)
        finally:
            shutil.rmtree(fresh, ignore_errors=True)
    return entry


def server_folder(name: str) -> Path | None:
    """Return the folder of a server that `tools/test-servers` fetches or builds, whether it is there or not.

    It is the folder in the environment variable UNSHARD_MYSQL_ROOT, UNSHARD_MYSQL_5_6_ROOT and so on, else the entry of
    the cache that `tools/servers.lock` describes; None if there is no variable and no checkout.
    """
    named = os.environ.get(f"UNSHARD_{re.sub('[-.]', '_', name).upper()}_ROOT")
    if named:
        return Path(named)
    return cache_folder() / "servers" / f"{name}-{_key(name)}" if _PINNED.is_file() else None


@cache
def _key(name: str) -> str:
    lines = [line for line in _PINNED.read_bytes().splitlines(keepends=True) if line.split()[:1] == [name.encode()]]
    files = [path.read_bytes() for path in sorted((_PINNED.parent / name).glob("*"))]
    return short_sum(b"".join(lines + files))
