"""Sets of global transaction ids, MariaDB's and MySQL's, as frozen values.

| | MariaDB | MySQL |
|---|---|---|
| text | `0-1-100,5-2-7` | `3E11FA47-…:1-5:7,…:tag:1-3` |
| one id | domain, server id, sequence number | server uuid, tag, number |
| a set is | the last id of each domain, which includes the ids before it | intervals of numbers for each uuid and tag |
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Self
from uuid import UUID

Interval = tuple[int, int]  # first and last number, both in

_TAG = re.compile(r"^[a-z_][a-z0-9_]{0,31}$")


@dataclass(frozen=True, slots=True)
class MariadbGtidSet:
    """A MariaDB GTID set: the last (domain, server id, sequence number) of each domain, in domain order."""

    last: tuple[tuple[int, int, int], ...] = ()

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse `0-1-100,5-2-7`; "" is the empty set. Raises ValueError."""
        return cls(()).add(*(_mariadb_id(part) for part in _parts(text)))

    def add(self, *ids: tuple[int, int, int]) -> Self:
        """Return the set after these ids. Each becomes the last id of its domain."""
        domains = {domain: (domain, server, number) for domain, server, number in (*self.last, *ids)}
        return type(self)(tuple(domains[domain] for domain in sorted(domains)))

    def contains(self, other: MariadbGtidSet) -> bool:
        """Return whether this set contains `other`, by the sequence numbers of each domain."""
        mine = {domain: number for domain, _, number in self.last}
        return all(mine.get(domain, -1) >= number for domain, _, number in other.last)

    def __str__(self) -> str:
        return ",".join("-".join(map(str, gtid)) for gtid in self.last)


@dataclass(frozen=True, slots=True)
class MysqlGtidSet:
    """A MySQL GTID set: disjoint ascending intervals of each origin (`uuid` or `uuid:tag`), in origin order."""

    origins: tuple[tuple[str, tuple[Interval, ...]], ...] = ()

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse `uuid:1-5:7,uuid:tag:3`; "" is the empty set. Raises ValueError."""
        found: list[tuple[str, int, int]] = []
        for part in _parts(text):
            found.extend(_mysql_ids(part))
        return cls(()).add(*found)

    def add(self, *runs: tuple[str, int, int]) -> Self:
        """Return the set with the numbers from first to last of each (origin, first, last) added."""
        origins: dict[str, list[Interval]] = {origin: list(intervals) for origin, intervals in self.origins}
        for origin, first, last in runs:
            if not 0 < first <= last:
                raise ValueError(f"not an interval of transaction numbers: {first}-{last}")
            origins.setdefault(origin, []).append((first, last))
        return type(self)(tuple((origin, _merged(origins[origin])) for origin in sorted(origins)))

    def contains(self, other: MysqlGtidSet) -> bool:
        """Return whether every id of `other` is in this set."""
        mine = dict(self.origins)
        return all(
            any(low <= first and last <= high for low, high in mine.get(origin, ()))
            for origin, intervals in other.origins
            for first, last in intervals
        )

    def without(self, other: MysqlGtidSet) -> Self:
        """Return the ids of this set that are not in `other`."""
        theirs = dict(other.origins)
        left = ((origin, _without(intervals, theirs.get(origin, ()))) for origin, intervals in self.origins)
        return type(self)(tuple((origin, intervals) for origin, intervals in left if intervals))

    def __str__(self) -> str:
        return ",".join(
            ":".join([origin, *(str(a) if a == b else f"{a}-{b}" for a, b in intervals)])
            for origin, intervals in self.origins
        )


GtidSet = MariadbGtidSet | MysqlGtidSet


def origin_text(origin: bytes) -> str:
    """Return `uuid` or `uuid:tag`, from the 16 bytes of a server's uuid followed by the characters of the tag."""
    uuid = str(UUID(bytes=origin[:16]))
    return f"{uuid}:{origin[16:].decode()}" if origin[16:] else uuid


def _parts(text: str) -> list[str]:
    """Return the comma-separated parts. Servers break long sets into lines."""
    return [part for part in "".join(text.split()).split(",") if part]


def _mariadb_id(text: str) -> tuple[int, int, int]:
    numbers = text.split("-")
    if len(numbers) != 3 or not all(number.isdecimal() for number in numbers):
        raise ValueError(f"not a MariaDB GTID: {text!r}")
    return int(numbers[0]), int(numbers[1]), int(numbers[2])


def _mysql_ids(text: str) -> list[tuple[str, int, int]]:
    uuid, *rest = text.split(":")
    try:
        server = str(UUID(uuid))
    except ValueError as error:
        raise ValueError(f"not a MySQL GTID: {text!r}") from error
    origin, found = server, []
    for item in rest:
        first, _, last = item.partition("-")
        if first.isdecimal() and (last.isdecimal() or not last):
            found.append((origin, int(first), int(last or first)))
        elif _TAG.match(item.lower()):
            origin = f"{server}:{item.lower()}"
        else:
            raise ValueError(f"not a MySQL GTID: {text!r}")
    if not found:
        raise ValueError(f"not a MySQL GTID: {text!r}")
    return found


def _without(mine: tuple[Interval, ...], theirs: tuple[Interval, ...]) -> tuple[Interval, ...]:
    left: list[Interval] = []
    for first, last in mine:
        for low, high in theirs:
            if low <= last and high >= first:
                if low > first:
                    left.append((first, low - 1))
                first = high + 1
        if first <= last:
            left.append((first, last))
    return tuple(left)


def _merged(intervals: list[Interval]) -> tuple[Interval, ...]:
    merged: list[Interval] = []
    for first, last in sorted(intervals):
        if merged and first <= merged[-1][1] + 1:
            merged[-1] = (merged[-1][0], max(last, merged[-1][1]))
        else:
            merged.append((first, last))
    return tuple(merged)
