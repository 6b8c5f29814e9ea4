"""The right to write to a relay folder: a lock that ends with the process, however the process ends."""

from __future__ import annotations

import fcntl
from dataclasses import dataclass
from pathlib import Path
from typing import IO

from unshard.errors import RelayError, Where
from unshard.relay.meta import disk

LOCK_NAME = ".lock"


@dataclass(slots=True)
class FolderLock:
    """An exclusive lock on the right to write to the relay folder `directory`.

    It is held from `take` to `release`; both are idempotent.
    """

    directory: Path
    _file: IO[bytes] | None = None

    def take(self) -> None:
        """Take the lock; the folder is made if need be.

        Raises RelayError 021 while another unit holds it, 013 or 014 where the folder can't be made or written to.
        """
        if self._file is not None:
            return
        with disk(self.directory):
            self.directory.mkdir(parents=True, exist_ok=True)
            file = (self.directory / LOCK_NAME).open("ab")
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError as error:
            file.close()
            raise RelayError("RELAY-021", Where(file=str(self.directory))) from error
        self._file = file

    def release(self) -> None:
        """Release the lock. May be called more than once."""
        if self._file is not None:
            self._file.close()
            self._file = None
