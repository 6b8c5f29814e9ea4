"""Deletes relay files that nobody needs: by name, by time, by age, or for space, and then only as many as it takes.

A plan is made from the files that exist and the positions that readers need; it never has a file that a reader needs.
Files are deleted oldest first, so a crash in between leaves no hole.
"""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate, takewhile
from pathlib import Path

from unshard.crash_point import reach
from unshard.errors import RelayError
from unshard.model.position import Position
from unshard.model.progress import size_text
from unshard.relay.log import RelayLog
from unshard.relay.meta import SubDirectory, disk, read_index, sync_folder

HOUR = 3600
GB = 1 << 30


@dataclass(frozen=True, slots=True)
class LogFile:
    """A file of the relay log: its folder and name, its bytes, and when it was written last (unix seconds)."""

    folder: SubDirectory
    name: str
    size: int
    modified: float

    def __str__(self) -> str:
        return f"{self.folder}/{self.name}"


@dataclass(frozen=True, slots=True)
class PurgeReader:
    """A task that reads the relay log, and the position from which it may read the log again."""

    task: str
    position: Position

    def __str__(self) -> str:
        return f"task {self.task} reads from {self.position} on"


@dataclass(frozen=True, slots=True)
class PurgeLimits:
    """The limits for the files to delete; several may be set at once.

    Args:
        before: files before the one of this name in `folder` (the newest by default), and those of earlier folders.
        before_time: files that were last written before this time (unix seconds).
        expires_hours, remain_gb: DM's `purge.expires` and `purge.remain-space`. 0: never.
    """

    before: str = ""
    folder: str = ""
    before_time: float = 0
    expires_hours: int = 0
    remain_gb: int = 0

    def __post_init__(self) -> None:
        """Raise RelayError RELAY-035 for a name without a number at its end, which no file or folder has."""
        for name in filter(None, (self.before, self.folder)):
            if not name.rpartition(".")[2].isdecimal():
                raise RelayError("RELAY-035", values={"name": name})


@dataclass(frozen=True, slots=True)
class Purged:
    """The result of a purge.

    Args:
        gone: the deleted files, oldest first.
        kept: the files that the limits select too, but that are still needed.
        reader: the task that needs the first file of `kept`; None: no task does, but the relay writes to it.
    """

    gone: tuple[LogFile, ...] = ()
    kept: tuple[LogFile, ...] = ()
    reader: PurgeReader | None = None

    def told(self) -> str:
        """Return the result in words, for the user who asked for the purge."""
        size = size_text(sum(file.size for file in self.gone))
        done = f"{_files(self.gone)} deleted, {size}" if self.gone else "nothing is deleted"
        if self.kept:
            return f"{done}; {_files(self.kept)} kept: {self.reader or 'the relay writes to it'}"
        return done if self.gone else f"{done}: the relay log has no such files"


def _files(files: Sequence[LogFile]) -> str:
    names = " to ".join(dict.fromkeys((str(files[0]), str(files[-1]))))
    return f"{len(files)} files ({names})" if len(files) > 1 else f"1 file ({names})"


def needed_from(
    files: Sequence[LogFile], readers: Mapping[str, Sequence[PurgeReader]]
) -> tuple[int, PurgeReader | None]:
    """Return the index in `files` from which on all are needed, and by whom; their number, and None, where none is.

    `readers`: by the uuid of the server of their positions. A reader in the log of an earlier server will still read
    the logs of all later ones. If no file has its position, it will begin somewhere in the newest folder, which is
    another server's.
    """
    begins = []
    for uuid, reader in ((uuid, reader) for uuid, several in readers.items() for reader in several):
        number = reader.position.number
        own = (at for at, file in enumerate(files) if file.folder.uuid == uuid and Position(file.name).number >= number)
        place = next(own, None)
        if place is None and files and files[-1].folder.uuid != uuid:
            place = next(at for at, file in enumerate(files) if file.folder == files[-1].folder)
        if place is not None:
            begins.append((place, reader.position, reader))
    first = min(begins, key=lambda begin: begin[:2], default=None)
    return (first[0], first[2]) if first is not None else (len(files), None)


def plan(
    files: Sequence[LogFile],
    readers: Mapping[str, Sequence[PurgeReader]],
    limits: PurgeLimits,
    *,
    now: float,
    free_bytes: int,
) -> Purged:
    """Return the files that the limits name, oldest first, split by whether they are needed. Pure.

    The newest file of all always stays: the relay writes to it. For space, files that are needed don't count.
    """
    first, reader = needed_from(files, readers)
    candidates = files[: min(first, len(files) - 1)] if files else []
    wished = _wished(files, limits, now)
    wished.update(_for_space(candidates, limits, free_bytes))
    kept = tuple(file for file in files[len(candidates) :] if file in wished)
    gone = tuple(file for file in candidates if file in wished)
    return Purged(gone, kept, reader if kept else None)


def _wished(files: Sequence[LogFile], limits: PurgeLimits, now: float) -> set[LogFile]:
    """Return the files that are named, and those of the time limits: none after one that is young enough to stay."""
    chosen: set[LogFile] = set()
    if limits.before:
        number = Position(limits.before).number
        newest = max((file.folder.suffix for file in files), default=0)
        asked = int(limits.folder.rpartition(".")[2]) if limits.folder else newest
        chosen.update(
            file
            for file in files
            if file.folder.suffix < asked or (file.folder.suffix == asked and Position(file.name).number < number)
        )
    expired = now - limits.expires_hours * HOUR if limits.expires_hours else 0
    oldest = max(expired, limits.before_time)
    chosen.update(takewhile(lambda file: file.modified < oldest, files))
    return chosen


def _for_space(candidates: Sequence[LogFile], limits: PurgeLimits, free_bytes: int) -> list[LogFile]:
    missing = limits.remain_gb * GB - free_bytes
    gained = accumulate((file.size for file in candidates), initial=0)
    return [file for file, before in zip(candidates, gained, strict=False) if before < missing]


def purge(root: Path, readers: Mapping[str, Sequence[PurgeReader]], limits: PurgeLimits, *, now: float) -> Purged:
    """Delete the files that the limits name and nobody needs, from the relay folder of a source.

    Raises RelayError 014 where the disk refuses, 016 where the folder is in disorder, 035 where it has no such folder.
    """
    if not root.is_dir():
        return Purged()
    if limits.folder and limits.folder not in map(str, read_index(root)):
        raise RelayError("RELAY-035", values={"name": limits.folder})
    planned = plan(listed(root), readers, limits, now=now, free_bytes=shutil.disk_usage(root).free)
    for file in planned.gone:
        path = root / str(file.folder) / file.name
        with disk(path):
            path.unlink()
            sync_folder(path.parent)
        reach("relay-file-purged")
    return planned


def listed(root: Path) -> list[LogFile]:
    """Return all files of a relay folder, oldest first."""
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
