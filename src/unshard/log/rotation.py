"""The log file, put aside when it is large: DM's limits, 512 MB a file and seven days."""

from __future__ import annotations

import time
from contextlib import suppress
from datetime import UTC, datetime
from logging.handlers import RotatingFileHandler
from pathlib import Path

LARGEST_BYTES = 512 << 20
KEPT_SECONDS = 7 * 24 * 3600.0


class RotatingFile(RotatingFileHandler):
    """Appends to `path`; at `largest_bytes` the file goes to `NAME-TIME.SUFFIX` beside it, for seven days."""

    def __init__(self, path: Path, largest_bytes: int = LARGEST_BYTES) -> None:
        super().__init__(path, maxBytes=largest_bytes, backupCount=1, encoding="utf-8")
        self._path = path.absolute()
        self._clear()

    def doRollover(self) -> None:
        if self.stream:
            self.stream.close()
        stamp = f"{datetime.now(UTC):%Y-%m-%dT%H-%M-%S.%f}"
        with suppress(FileNotFoundError):
            self._path.rename(self._path.with_name(f"{self._path.stem}-{stamp}{self._path.suffix}"))
        self._clear()
        self.stream = self._open()

    def _clear(self) -> None:
        """Delete what was put aside too long ago."""
        for old in self._path.parent.glob(f"{self._path.stem}-[0-9]*T*{self._path.suffix}"):
            with suppress(FileNotFoundError):
                if old.stat().st_mtime < time.time() - KEPT_SECONDS:
                    old.unlink()
