"""A server's binlog as a relay log."""

from __future__ import annotations

from pathlib import Path

from unshard.model.position import Position
from unshard.testing.mariadb_server import MariadbServer


class OwnFiles:
    """A server's own binlog files from `first` on, as a relay would have them."""

    upstream = "0-2"

    def __init__(self, server: MariadbServer, first: str) -> None:
        self.paths = {path.name: path for path in server.binlog_files() if path.name >= first}
        ((name, offset, *_),) = server.query("SHOW MASTER STATUS")
        self.written = Position(name, int(offset))
        self.log = self

    def path(self, file: str) -> Path:
        return self.paths[file]

    def files(self) -> tuple[str, ...]:
        return tuple(sorted(self.paths))

    def next_file(self, file: str) -> str | None:
        later = [name for name in self.files() if name > file]
        return later[0] if later else None

    def check(self) -> None:
        """Nothing stops it."""

    def wait_for(self, position: Position, timeout: float) -> bool:
        raise AssertionError(f"all is there, but {position} was waited for {timeout} s")
