"""Rotates log files by their size. The limits are DM's: 512 MB a file and seven days."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from logging.handlers import RotatingFileHandler
from pathlib import Path
from threading import Event, Thread

LARGEST_BYTES = 512 << 20
KEPT_SECONDS = 7 * 24 * 3600.0
LOOK_SECONDS = 60.0


class RotatingFile(RotatingFileHandler):
    """A log file that is rotated by its size.

    At `largest_bytes` the file is renamed to `NAME-TIME.SUFFIX` beside it, and kept for seven days.
    """

    def __init__(self, path: Path, largest_bytes: int = LARGEST_BYTES) -> None:
        super().__init__(path, maxBytes=largest_bytes, backupCount=1, encoding="utf-8")
        self._path = path.absolute()
        _clear(self._path)

    def doRollover(self) -> None:
        """Rename the file, delete old ones, and open a new file under the same name.

        Where the file can't be renamed, lines are appended to it as before, and the next line tries again. Where none
        can be opened, the next line tries that.
        """
        if self.stream:
            self.stream.close()
            self.stream = None
        with suppress(OSError):
            self._path.rename(_beside(self._path))
            _clear(self._path)
        self.stream = self._open()


@contextmanager
def kept_small(path: Path, largest_bytes: int = LARGEST_BYTES, every: float = LOOK_SECONDS) -> Iterator[None]:
    """Limit the size of a file that other processes keep open and append to: a copy is made, and the file is emptied.

    The processes must have opened the file for appending. A line is lost only if it comes in the instant between the
    check that the copy is complete and the emptying. log4j's own rotation would only cover log4j's lines: the output of
    the JVM itself and of Python workers comes by the stderr with which they were started.
    """
    ended = Event()

    def look() -> None:
        while not ended.wait(every):
            with suppress(OSError):  # the next check tries again
                if path.stat().st_size >= largest_bytes:
                    _empty_into(path, _beside(path))
                    _clear(path)

    thread = Thread(target=look, name=f"rotation of {path.name}", daemon=True)
    thread.start()
    try:
        yield
    finally:
        ended.set()
        thread.join()


def _empty_into(path: Path, aside: Path) -> None:
    """Copy the file until nothing more has been appended, then empty it.

    If there is no space for the copy, the file stays.
    """
    try:
        with path.open("rb") as found, aside.open("wb") as copy:
            while os.fstat(found.fileno()).st_size > copy.tell():
                shutil.copyfileobj(found, copy)
                copy.flush()
            os.truncate(path, 0)
    except OSError:
        aside.unlink(missing_ok=True)
        raise


def _beside(path: Path) -> Path:
    return path.with_name(f"{path.stem}-{datetime.now(UTC):%Y-%m-%dT%H-%M-%S.%f}{path.suffix}")


def _clear(path: Path) -> None:
    """Delete files that were renamed too long ago."""
    for old in path.parent.glob(f"{path.stem}-[0-9]*T*{path.suffix}"):
        with suppress(FileNotFoundError):
            if old.stat().st_mtime < time.time() - KEPT_SECONDS:
                old.unlink()
