"""Deleting relay files that nobody needs: by name, by age, or for space, and then only as many as it takes.

A plan is made of what lies there and of what readers need; nothing of what they need is ever in it. Files go oldest
first, so a crash on the way leaves no hole.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, takewhile
from pathlib import Path

from unshard.errors import RelayError
from unshard.model.position import Position
from unshard.relay.log import RelayLog
from unshard.relay.meta import SubDirectory, disk, read_index, sync_folder

HOUR = 3600
GB = 1 << 30


@dataclass(frozen=True, slots=True)
class LogFile:
    """A file of the relay log: where it lies, its bytes, and when it was written last (unix seconds)."""

    folder: SubDirectory
    name: str
    size: int
    modified: float


@dataclass(frozen=True, slots=True)
class Limits:
    """What is wished away. `before`: files of `folder` older than that one; all three may hold at once.

    `expires_hours` and `remain_gb` are DM's `purge.expires` and `purge.remain-space`; 0: never.
    """

    before: str = ""
    folder: str = ""
    expires_hours: int = 0
    remain_gb: int = 0

    def __post_init__(self) -> None:
        """Raises RelayError 035 for names that are none."""
        for name in filter(None, (self.before, self.folder)):
            if not name.rpartition(".")[2].isdecimal():
                raise RelayError("RELAY-035", values={"name": name})


def free_to_go(files: Sequence[LogFile], needed: Mapping[str, Sequence[Position]]) -> list[LogFile]:
    """The files, oldest first, that no reader needs. `needed`: by the server's uuid, where its readers may begin.

    The newest file of all always stays: the relay goes on with it.
    """
    least = {uuid: min(places) for uuid, places in needed.items() if places}
    return [
        file
        for file in files[:-1]
        if file.folder.uuid not in least or Position(file.name).number < least[file.folder.uuid].number
    ]


def plan(candidates: Sequence[LogFile], limits: Limits, *, now: float, free_bytes: int) -> list[LogFile]:
    """Those of `candidates` (oldest first, needed by nobody) that the limits wish away. Pure."""
    chosen: set[LogFile] = set()
    if limits.before:
        number = Position(limits.before).number
        newest = max((file.folder.suffix for file in candidates), default=0)
        asked = int(limits.folder.rpartition(".")[2]) if limits.folder else newest
        chosen.update(
            file
            for file in candidates
            if file.folder.suffix < asked or (file.folder.suffix == asked and Position(file.name).number < number)
        )
    if limits.expires_hours:
        oldest = now - limits.expires_hours * HOUR
        chosen.update(takewhile(lambda file: file.modified < oldest, candidates))
    missing = limits.remain_gb * GB - free_bytes
    if missing > 0:
        gained = accumulate((file.size for file in candidates), initial=0)
        chosen.update(file for file, before in zip(candidates, gained, strict=False) if before < missing)
    return [file for file in candidates if file in chosen]


def purge(root: Path, needed: Mapping[str, Sequence[Position]], limits: Limits, *, now: float) -> list[LogFile]:
    """Delete what the limits wish away and nobody needs, from the relay folder of a source; what went.

    Raises RelayError 014 where the disk says no, 016 where the folder is in disorder.
    """
    if not root.is_dir():
        return []
    free = shutil.disk_usage(root).free
    gone = plan(free_to_go(listed(root), needed), limits, now=now, free_bytes=free)
    for file in gone:
        path = root / str(file.folder) / file.name
        with disk(path):
            path.unlink()
            sync_folder(path.parent)
    return gone


def listed(root: Path) -> list[LogFile]:
    """All files of a relay folder, oldest first."""
    return list(_listed(root))


def _listed(root: Path) -> Iterable[LogFile]:
    for folder in read_index(root):
        log = RelayLog(root, folder)
        if not log.folder.is_dir():
            continue
        for name in log.files():
            with disk(log.path(name)):
                found = log.path(name).stat()
            yield LogFile(folder, name, found.st_size, found.st_mtime)
