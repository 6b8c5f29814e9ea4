"""The text of an SQL file, mapped into memory: a file may be larger than the memory of the machine.

A compressed file is unpacked into a temporary file first (`TMPDIR`), which has no name and ends with its use.
"""

from __future__ import annotations

import gzip
import shutil
import tempfile
import zlib
from mmap import ACCESS_READ, mmap
from pathlib import Path
from typing import IO

from unshard.errors import LoadError, Where

Bytes = bytes | mmap
"""What `re` takes, and what has slices of bytes and `find`."""

_COPIED = 1 << 20


def open_text(path: Path) -> Bytes:
    """Return a file's bytes, decompressed.

    Raises LoadError LOAD-002 for a damaged archive, LOAD-040 where there is no room to unpack it.
    """
    with path.open("rb") as file:
        if path.suffix != ".gz":
            return _mapped(file)
        with tempfile.TemporaryFile() as unpacked:
            _unpack(path, file, unpacked)
            return _mapped(unpacked)


def _unpack(path: Path, file: IO[bytes], unpacked: IO[bytes]) -> None:
    where = Where(file=str(path))
    with gzip.open(file) as archive:
        while True:
            try:
                data = archive.read(_COPIED)
            except (EOFError, OSError, zlib.error) as error:
                fault = "the compressed data is not whole"
                raise LoadError("LOAD-002", where, cause=str(error), values={"fault": fault}) from error
            try:
                unpacked.write(data)
                if not data:
                    unpacked.flush()
                    return
            except OSError as error:
                folder = tempfile.gettempdir()
                values = {"file": path.name, "folder": folder, "free": shutil.disk_usage(folder).free >> 20}
                raise LoadError("LOAD-040", where, cause=str(error), values=values) from error


def _mapped(file: IO[bytes]) -> Bytes:
    file.seek(0, 2)
    return mmap(file.fileno(), 0, access=ACCESS_READ) if file.tell() else b""
