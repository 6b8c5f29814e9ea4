"""The small files beside the binlogs, as DM writes them: `server-uuid.index` and each sub-directory's `relay.meta`.

Both are replaced whole (temporary file, fsync, rename, fsync of the folder), so a reader sees the old or the new one.
"""

from __future__ import annotations

import errno
import json
import os
import re
import tomllib
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from unshard.errors import RelayError, Where
from unshard.model.position import Location, Position

INDEX_NAME = "server-uuid.index"
META_NAME = "relay.meta"

_SUB_DIRECTORY = re.compile(r"^(?P<uuid>.+)\.(?P<suffix>\d{6,})$")
_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


@dataclass(frozen=True, slots=True)
class SubDirectory:
    """The name `<server-uuid>.<suffix>` of a sub-directory: the files of one server, or one gapless run of them."""

    uuid: str
    suffix: int

    def __str__(self) -> str:
        return f"{self.uuid}.{self.suffix:06d}"


@contextmanager
def disk(path: Path) -> Iterator[None]:
    """Turn an OSError of the block into RelayError: 013 when there is no space, else 014."""
    try:
        yield
    except OSError as error:
        code = "RELAY-013" if error.errno in _FULL else "RELAY-014"
        raise RelayError(code, Where(file=str(path)), str(error)) from error


def read_index(root: Path) -> tuple[SubDirectory, ...]:
    """Return the sub-directories in the order in which they were begun; none where there is no index.

    Raises RelayError 016 for a line that is no sub-directory's name, or suffixes that don't grow by one.
    """
    path = root / INDEX_NAME
    if not path.exists():
        return ()
    found: list[SubDirectory] = []
    for line in path.read_text().split():
        match = _SUB_DIRECTORY.match(line)
        if match is None:
            raise _disorder(path, f"`{line}` is no sub-directory's name")
        if found and int(match["suffix"]) != found[-1].suffix + 1:
            raise _disorder(path, f"`{line}` does not follow {found[-1]}")
        found.append(SubDirectory(match["uuid"], int(match["suffix"])))
    return tuple(found)


def add_sub_directory(root: Path, uuid: str) -> SubDirectory:
    """Begin the next sub-directory, for server `uuid`: make the folder, then name it in the index."""
    index = read_index(root)
    added = SubDirectory(uuid, index[-1].suffix + 1 if index else 1)
    folder = root / str(added)
    with disk(folder):
        folder.mkdir(parents=True, exist_ok=True)
        replace_whole(root / INDEX_NAME, "".join(f"{sub}\n" for sub in (*index, added)))
    return added


def read_meta(folder: Path) -> Location | None:
    """Return how far the log was known to be durable, or None before the first save. Raises RelayError 016."""
    path = folder / META_NAME
    if not path.exists():
        return None
    try:
        keys = tomllib.loads(path.read_text())
        return Location(Position(str(keys["binlog-name"]), int(keys["binlog-pos"])), str(keys["binlog-gtid"]))
    except (tomllib.TOMLDecodeError, KeyError, TypeError, ValueError) as error:
        raise _disorder(path, str(error)) from error


def write_meta(folder: Path, location: Location) -> None:
    """Save how far the log is durable; called after its file was synced."""
    name, gtid = json.dumps(location.position.file), json.dumps(location.gtid)
    path = folder / META_NAME
    with disk(path):
        replace_whole(path, f"binlog-name = {name}\nbinlog-pos = {location.position.offset}\nbinlog-gtid = {gtid}\n")


def sync_folder(folder: Path) -> None:
    """Make the creation, renaming and removal of names in `folder` durable."""
    handle = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def replace_whole(path: Path, text: str) -> None:
    """Replace a file durably, so that a reader sees the old one or the new one. Raises OSError."""
    temporary = path.with_name(f"{path.name}.tmp")
    with temporary.open("w") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    temporary.rename(path)
    sync_folder(path.parent)


def _disorder(path: Path, problem: str) -> RelayError:
    return RelayError("RELAY-016", Where(file=str(path)), values={"problem": problem})
