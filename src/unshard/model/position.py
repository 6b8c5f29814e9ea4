"""Binlog positions: a file name and a byte offset, ordered as the server writes them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import lru_cache, total_ordering

_NAME = re.compile(r"^(?P<base>.+)\.(?P<number>\d+)$")
FIRST_OFFSET = 4  # every binlog file opens with four magic bytes


@total_ordering
@dataclass(frozen=True, slots=True)
class Position:
    """A position in one server's binlog: the byte at `offset` of `file` (`mysql-bin.000003`).

    Ordered by the number in the file's suffix, so that 999999 comes before 1000000.
    """

    file: str
    offset: int = FIRST_OFFSET

    @property
    def number(self) -> int:
        """The number in the file's suffix. Raises ValueError if the name has none."""
        return _number(self.file)

    def __lt__(self, other: Position) -> bool:
        return (_number(self.file), self.offset) < (_number(other.file), other.offset)

    def __str__(self) -> str:
        return f"{self.file}:{self.offset}"

    @classmethod
    def parse(cls, text: str) -> Position:
        """Parse `file:offset`, the form of `str`."""
        file, _, offset = text.rpartition(":")
        return cls(file, int(offset))


@lru_cache(maxsize=1024)
def _number(file: str) -> int:
    match = _NAME.match(file)
    if match is None:
        raise ValueError(f"not a binlog file name: {file!r}")
    return int(match["number"])


@dataclass(frozen=True, slots=True)
class Location:
    """A position with the GTID set that was executed up to it; "" if the server has none."""

    position: Position
    gtid: str = ""

    def __str__(self) -> str:
        return f"{self.position} gtid {self.gtid}" if self.gtid else str(self.position)
