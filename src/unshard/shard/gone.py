"""Tables that were dropped or renamed while changes of their group waited.

They stay on record so that their changes in the log stay readable. Only the search for rows that have moved
(`sync/sharding/moved_rows.py`) needs that: nobody waits for such a table any more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from unshard.model.position import Location
from unshard.model.table import TableName, name_form, name_of
from unshard.shard.sequence import DdlItem, Form, Moved, place_form, place_of


@dataclass(frozen=True, slots=True)
class Gone:
    """The record of a table that was dropped or renamed while changes of its group waited.

    Args:
        at: the begin of its DROP or RENAME in the log.
        became: its new name, if it was renamed.
        last: its structure at `at`.
        met: the statements that it had met before `at`, as far as the group had them on record.
    """

    name: TableName
    at: Location
    became: TableName | None = None
    last: Form | None = None
    met: tuple[DdlItem, ...] = ()

    @property
    def places(self) -> tuple[Location, ...]:
        """All locations that are on record."""
        return (self.at, *(place for item in self.met for place in (item.begin, item.end)))

    def moved(self, to: Moved) -> Gone:
        """Return the record with its locations in another server's log."""
        return replace(self, at=to(self.at), met=tuple(item.moved(to) for item in self.met))

    def to_dict(self) -> Form:
        """Return the JSON form, which `from_dict` reads."""
        became = name_form(self.became) if self.became is not None else None
        met = [item.to_dict() for item in self.met]
        return {
            "name": name_form(self.name),
            "at": place_form(self.at),
            "became": became,
            "last": self.last,
            "met": met,
        }

    @classmethod
    def from_dict(cls, form: Form) -> Gone:
        """Read the form of `to_dict`."""
        became = name_of(form["became"]) if form["became"] is not None else None
        met = tuple(map(DdlItem.from_dict, form["met"]))
        return cls(name_of(form["name"]), place_of(form["at"]), became, form["last"], met)


def kept_behind(gone: Sequence[Gone], first: Location | None) -> tuple[Gone, ...]:
    """Return the dropped tables after `first`, from where the log is needed; none where no log is needed."""
    if first is None:
        return ()
    place = first.position
    return tuple(
        replace(one, met=tuple(item for item in one.met if item.begin.position >= place))
        for one in gone
        if one.at.position > place
    )
