"""A log file as the bytes that its readers take."""

from __future__ import annotations

import mmap
from pathlib import Path


def mapped(path: Path, end: int) -> mmap.mmap:
    """The file's first `end` bytes. Raises ValueError when it has fewer, OSError when it can't be read.

    The map goes with its last reader and is not to be closed by hand: an error's traceback still holds views of it, and
    the failing close ("cannot close exported pointers exist") would hide that error.
    """
    with path.open("rb") as file:
        return mmap.mmap(file.fileno(), end, prot=mmap.PROT_READ)
