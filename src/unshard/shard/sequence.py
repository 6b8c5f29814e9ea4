"""The pending sharding DDL of one source table: statements that its log has reached and its group has not resolved."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import Any

from unshard.model.position import Location, Position
from unshard.shard.same_ddl import same

Form = dict[str, Any]
Moved = Callable[[Location], Location]
"""Translates a location in one server's log to the same location in another server's."""


@dataclass(frozen=True, slots=True)
class DdlItem:
    """A statement that a table has met, with its location in the log.

    Args:
        begin, end: its locations in the log; where the table's copy has the statement, `end` is the copy's snapshot.
        ddls: its statements, which name the target table.
        payload: data of the caller, in JSON.
        time: when it was met, in ISO 8601.
    """

    begin: Location
    end: Location
    ddls: tuple[str, ...]
    payload: Mapping[str, Any] = field(default_factory=dict)
    time: str = ""

    def at(self, place: Location) -> DdlItem:
        """Return the same statement for a table that was created after it, at `place`."""
        return DdlItem(place, place, self.ddls, self.payload, self.time)

    def moved(self, to: Moved) -> DdlItem:
        """Return the item with its locations in another server's log."""
        return replace(self, begin=to(self.begin), end=to(self.end))

    def __str__(self) -> str:
        return f"{'; '.join(self.ddls)} ({self.begin.position})"

    def to_dict(self) -> Form:
        """Return the JSON form, which `from_dict` reads."""
        return {
            "begin": place_form(self.begin),
            "end": place_form(self.end),
            "ddls": list(self.ddls),
            "payload": dict(self.payload),
            "time": self.time,
        }

    @classmethod
    def from_dict(cls, form: Form) -> DdlItem:
        """Read the form of `to_dict`."""
        begin, end = place_of(form["begin"]), place_of(form["end"])
        return cls(begin, end, tuple(form["ddls"]), form["payload"], form["time"])


def side_by_side(name: str, mine: Sequence[DdlItem | str], other: str, theirs: Sequence[DdlItem | str]) -> str:
    """Return two lists under each other, number by number: `==` where both are the same DDL, `<>` where they differ.

    After the first difference, a statement that only one list has is not marked.
    """
    lines, differ = [], False
    for number, (left, right) in enumerate(zip_longest(mine, theirs), 1):
        if left is not None and right is not None:
            mark = "==" if same(_statements(left), _statements(right)) else "<>"
        else:
            mark = "  " if differ else "<>"
        differ = differ or mark == "<>"
        lines += [f"{number} {mark} {name}: {left or 'nothing yet'}", f"     {other}: {right or 'nothing yet'}"]
    return "\n       ".join(lines)


def _statements(one: DdlItem | str) -> Sequence[str]:
    return one.ddls if isinstance(one, DdlItem) else (one,)


@dataclass(frozen=True, slots=True)
class ShardingSequence:
    """The DDL statements of one table that are not resolved yet; the group resolves the first one next."""

    items: tuple[DdlItem, ...] = ()

    def __len__(self) -> int:
        return len(self.items)

    def statements(self) -> list[str]:
        """Return one text an item, with its position."""
        return [str(item) for item in self.items]


def place_form(place: Location) -> list[Any]:
    """Return a location's form for JSON."""
    return [place.position.file, place.position.offset, place.gtid]


def place_of(form: Sequence[Any]) -> Location:
    """Return the location of a form that `place_form` made."""
    file, offset, gtid = form
    return Location(Position(file, offset), gtid)
