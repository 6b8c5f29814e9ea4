"""A relay log of files made by hand, which grows when the test says so."""

from __future__ import annotations

from pathlib import Path

from made_events import File

from unshard.model.position import Position

NAME = "mysql-bin.000001"


class GrowingLog:
    """One file; `show` writes what it has so far. `asked` counts how often it was opened."""

    upstream = "new"

    def __init__(self, directory: Path) -> None:
        self.log, self.file, self.asked = self, directory / NAME, 0
        self.written = Position(NAME, 4)
        self.waited: list[Position] = []

    def show(self, file: File, size: int | None = None) -> None:
        """The first `size` bytes of the file, all of it by default, are there from now on."""
        data = bytes(file.data)[:size]
        self.file.write_bytes(data)
        self.written = Position(NAME, len(data))

    def path(self, file: str) -> Path:
        assert file == NAME
        self.asked += 1
        return self.file

    def files(self) -> tuple[str, ...]:
        return (NAME,)

    def next_file(self, file: str) -> str | None:
        return None

    def check(self) -> None:
        """Nothing stops it."""

    def wait_for(self, position: Position, timeout: float) -> bool:
        self.waited.append(position)
        return self.written >= position
