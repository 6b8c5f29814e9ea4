"""The writer of the relay log, with which the relay's thread appends events to the files."""

from __future__ import annotations

import os
from pathlib import Path

from unshard.errors import RelayError, Where
from unshard.model.position import FIRST_OFFSET, Location, Position
from unshard.relay.meta import disk, sync_folder, write_meta

MAGIC = b"\xfebin"


class RelayWriter:
    """The writer of one sub-directory's files, which it writes one after the other.

    A file begins with the magic bytes, written with its first event. Others may read the data once `write` has
    returned; `sync` makes it durable. After an error the file is truncated after the last whole event.
    """

    def __init__(self, folder: Path, file: str, end: int) -> None:
        """Continue `file` at its size `end` (0: it is begun)."""
        self._folder = folder
        self._handle = -1
        self._open(file, end)

    @property
    def end(self) -> Position:
        """The end of the last event; a file's start is offset 4, also while it is still empty."""
        return Position(self.file, max(self._size, FIRST_OFFSET))

    @property
    def path(self) -> Path:
        """Path of the file that is being written."""
        return self._folder / self.file

    def head(self, length: int) -> bytes:
        """Return the first `length` bytes after the magic ones, or as many as there are."""
        with disk(self.path):
            return os.pread(self._handle, length, FIRST_OFFSET)

    def write(self, offset: int, data: memoryview) -> None:
        """Append whole events that the source has at `offset`; those that the file already has must be the same.

        Raises RelayError: 004 (a hole), 015 (other bytes), 013 and 014 (the disk).
        """
        if offset > self.end.offset:
            raise RelayError("RELAY-004", Where(position=f"{self.file}:{offset}", file=str(self.path)))
        known = self.end.offset - offset
        if known:
            known = min(known, len(data))
            with disk(self.path):
                if os.pread(self._handle, known, offset) != data[:known]:
                    raise RelayError("RELAY-015", Where(position=f"{self.file}:{offset}", file=str(self.path)))
            data = data[known:]
        if not self._size:
            self._append(memoryview(MAGIC))
        self._append(data)

    def rotate(self, file: str, gtid: str) -> None:
        """Make the current file durable and go on with the next one."""
        self.sync(gtid)
        finished = self._handle
        self._open(file, 0)  # first: if this fails, the current file stays the one that is closed and reported
        os.close(finished)
        with disk(self._folder):
            sync_folder(self._folder)
        write_meta(self._folder, Location(self.end, gtid))

    def sync(self, gtid: str) -> None:
        """Make all that was written durable and record that in `relay.meta`."""
        with disk(self.path):
            os.fdatasync(self._handle)
        write_meta(self._folder, Location(self.end, gtid))

    def close(self) -> None:
        """Close without syncing; idempotent."""
        if self._handle >= 0:
            self._close()

    def _open(self, file: str, end: int) -> None:
        path = self._folder / file
        with disk(path):
            handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o640)
            try:
                os.ftruncate(handle, end)
            except OSError:
                os.close(handle)
                raise
        self.file, self._handle, self._size = file, handle, end

    def _close(self) -> None:
        os.close(self._handle)
        self._handle = -1

    def _append(self, data: memoryview) -> None:
        done = 0
        with disk(self.path):
            try:
                while done < len(data):
                    done += os.pwrite(self._handle, data[done:], self._size + done)
            except OSError:
                os.ftruncate(self._handle, self._size)
                raise
        self._size += done
