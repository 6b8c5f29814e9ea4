"""The relay log as its readers see it: binlog files by the upstream's names."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from unshard.errors import RelayError, Where
from unshard.model.position import Position
from unshard.relay.meta import INDEX_NAME, META_NAME, SubDirectory, disk, read_index


class RelayLog:
    """One sub-directory of a relay folder; by default the newest at the time when the log is first used.

    Files may be read while they grow, but only up to `RelayUnit.written`: after it there may be half an event.
    Holds no handles; any thread may use it.
    """

    def __init__(self, directory: Path, sub_directory: SubDirectory | None = None) -> None:
        self.directory = directory
        self._sub_directory = sub_directory

    @property
    def sub_directory(self) -> SubDirectory:
        """The sub-directory that this reads. Raises RelayError 019 while the relay has not begun any."""
        if self._sub_directory is None:
            index = read_index(self.directory)
            if not index:
                raise RelayError("RELAY-019", Where(file=str(self.directory / INDEX_NAME)))
            self._sub_directory = index[-1]
        return self._sub_directory

    @property
    def folder(self) -> Path:
        """Folder of this server's files; its name is the sub-directory's."""
        return self.directory / str(self.sub_directory)

    def path(self, file: str) -> Path:
        """Return the path of the file with that upstream name; it need not exist."""
        return self.folder / file

    def size(self, file: str) -> int:
        """Return the file's present size in bytes."""
        with disk(self.path(file)):
            return self.path(file).stat().st_size

    def files(self) -> tuple[str, ...]:
        """Return the names of the binlog files, oldest first. Raises RelayError 016 when one is missing in between.

        Hidden files are not the relay's: NFS makes one of a deleted file that is still open.
        """
        numbered: list[tuple[int, str]] = []
        with disk(self.folder):
            for path in self.folder.iterdir():
                if not path.name.startswith((META_NAME, ".")):
                    numbered.append((_number(path), path.name))
        numbered.sort()
        for (before, name), (number, follower) in pairwise(numbered):
            if number != before + 1:
                problem = f"{follower} stands behind {name}: files between them are missing"
                raise RelayError("RELAY-016", Where(file=str(self.folder)), values={"problem": problem})
        return tuple(name for _, name in numbered)

    def next_file(self, file: str) -> str | None:
        """Return the file that follows, or None when `file` is the newest."""
        number = Position(file).number
        return next((name for name in self.files() if Position(name).number == number + 1), None)


@dataclass(frozen=True, slots=True)
class EarlierLog:
    """The remaining files of a server that the relay no longer follows, read as if a relay still wrote them.

    `written` is the end of the newest file.
    """

    log: RelayLog
    written: Position

    @property
    def upstream(self) -> str:
        """UUID of the server that wrote the files."""
        return self.log.sub_directory.uuid

    def wait_for(self, position: Position, timeout: float) -> bool:
        """Return whether the files reach `position`. Returns at once: the files do not grow."""
        del timeout
        return self.written >= position

    def check(self) -> None:
        """Do nothing: no relay is running that could have stopped."""


def earlier_log(directory: Path, uuid: str, needed: Iterable[Position]) -> EarlierLog:
    """Return the newest sub-directory of that server that has all bytes before `needed`, each in its file.

    Raises RelayError 031 where there is none.
    """
    places = tuple(needed)
    for sub_directory in reversed(read_index(directory)):
        log = RelayLog(directory, sub_directory)
        files = [log.path(place.file) for place in places]
        if sub_directory.uuid != uuid or not all(path.is_file() for path in files):
            continue
        if all(path.stat().st_size >= place.offset for path, place in zip(files, places, strict=True)):
            newest = log.files()[-1]
            return EarlierLog(log, Position(newest, log.size(newest)))
    raise RelayError("RELAY-031", Where(position=str(places[-1]), file=str(directory)), values={"uuid": uuid})


def _number(path: Path) -> int:
    try:
        return Position(path.name).number
    except ValueError:
        problem = f"{path.name} is no binlog file"
        raise RelayError("RELAY-016", Where(file=str(path)), values={"problem": problem}) from None
