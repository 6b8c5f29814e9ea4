"""A table that went, or got another name, while changes of its group were held: what the log has of it stays readable.

Only the look for rows that have moved (`sync.moved`) asks for it: such a table is nobody's to wait for any more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from unshard.model.position import Location
from unshard.model.table import TableName, name_form, name_of
from unshard.shard.sequence import DdlItem, Form, Moved, place_form, place_of


@dataclass(frozen=True, slots=True)
class Gone:
    """`at` is where: the begin of its DROP or RENAME. `became` is its new name, `last` the structure that it had there.

    `met` are the statements before, as far as the group had them on record.
    """

    name: TableName
    at: Location
    became: TableName | None = None
    last: Form | None = None
    met: tuple[DdlItem, ...] = ()

    @property
    def places(self) -> tuple[Location, ...]:
        """All that is on record of the log."""
        return (self.at, *(place for item in self.met for place in (item.begin, item.end)))

    def moved(self, to: Moved) -> Gone:
        """The same in another log."""
        return replace(self, at=to(self.at), met=tuple(item.moved(to) for item in self.met))

    def to_dict(self) -> Form:
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
        became = name_of(form["became"]) if form["became"] is not None else None
        met = tuple(map(DdlItem.from_dict, form["met"]))
        return cls(name_of(form["name"]), place_of(form["at"]), became, form["last"], met)


def kept_behind(gone: Sequence[Gone], first: Location | None) -> tuple[Gone, ...]:
    """Those that lie behind the first place of the log that is needed; none where none is."""
    if first is None:
        return ()
    place = first.position
    return tuple(
        replace(one, met=tuple(item for item in one.met if item.begin.position >= place))
        for one in gone
        if one.at.position > place
    )
