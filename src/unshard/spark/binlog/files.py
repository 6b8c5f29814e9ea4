"""Tails a folder of binlog files as one log.

The log is cut into ranges of whole transactions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from unshard.binlog.headers import MAGIC
from unshard.errors import BinlogError, Where
from unshard.model.position import Location, Position
from unshard.relay.log import RelayLog
from unshard.relay.meta import INDEX_NAME
from unshard.sync.source_log.prepared_xa import look_back, no_prepare, rows_of
from unshard.sync.source_log.reader import Complete, Prepare, TransactionRows, next_work
from unshard.target.prepared_xa import PreparedXa


@dataclass(frozen=True, slots=True)
class FileLog:
    """The binlog files of one server in one folder, as a `sync.source_log.reader.Log`.

    With `only`, the log is that one file.
    """

    folder: Path
    only: str | None = None

    def path(self, file: str) -> Path:
        """Return the path of the file with that name; it need not exist."""
        return self.folder / file

    def next_file(self, file: str) -> str | None:
        """Return the name of the file that follows; None where it does not exist yet."""
        number = Position(file).number
        return next((name for name in self.files() if Position(name).number == number + 1), None)

    def files(self) -> tuple[str, ...]:
        """Return the names in the order of their numbers.

        Raises BinlogError 055 if there is no file, or files of several logs.
        """
        if self.only is not None:
            return (self.only,)
        found = sorted(
            (Position(path.name) for path in self.folder.iterdir() if _is_binlog(path)), key=lambda at: at.number
        )
        bases = sorted({at.file.rpartition(".")[0] for at in found})
        if len(bases) != 1:
            cause = f"it holds several logs: {', '.join(bases)}" if bases else "no binlog file is in it"
            raise BinlogError("BINLOG-055", Where(file=str(self.folder)), cause)
        return tuple(at.file for at in found)

    def end(self) -> Position:
        """Return the end of what can be read now. If the last event is incomplete, `stretches` leaves it for later."""
        last = self.files()[-1]
        return Position(last, self.path(last).stat().st_size)


def open_log(path: Path) -> FileLog:
    """Return the log at `path`: a file, a folder of files, or a relay folder (its newest sub-directory).

    Raises BinlogError 055 if nothing can be read there.
    """
    if path.is_file():
        return FileLog(path.parent, path.name)
    if not path.is_dir():
        raise BinlogError("BINLOG-055", Where(file=str(path)), "there is no such file or folder")
    if (path / INDEX_NAME).exists():
        return FileLog(RelayLog(path).folder)
    return FileLog(path)


def stretches(log: FileLog, start: Position, end: Position, range_bytes: int) -> Iterator[TransactionRows]:
    """Yield the row transactions from `start` up to `end`, in runs of about `range_bytes`.

    Stops before a transaction that isn't complete yet. The rows of an XA transaction come with its commit, even if they
    were prepared before `start`. Raises BinlogError for an event that can't be followed.
    """
    at, source = Location(start), str(log.folder)
    prepared: dict[str, PreparedXa] = {}
    while at.position < end:
        work = next_work(log, at, end, range_bytes, source)
        if work is None:
            return
        if isinstance(work, TransactionRows):
            yield work
        elif isinstance(work, Prepare):
            xid = work.prepared.xid
            prepared[xid] = PreparedXa(xid, Location(work.begin), work.prepared.end)
        elif isinstance(work, Complete):
            found = prepared.pop(work.completed.xid, None)
            if work.completed.committed:
                found = found or look_back(log, work, source)
                if found is None:
                    raise no_prepare(work, source)
                yield rows_of(log, found, work.begin, work.end, work.completed.timestamp, source)
        at = work.end


def _is_binlog(path: Path) -> bool:
    try:
        number = Position(path.name).number
    except ValueError:
        return False
    if number < 1 or not path.is_file():
        return False
    with path.open("rb") as file:
        return file.read(len(MAGIC)) == MAGIC
