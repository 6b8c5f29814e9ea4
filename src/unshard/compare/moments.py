"""The positions of a source at one moment of a comparison, and what they tell of the time between two moments."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from unshard.compare.places import LogPlace, SourceWatch
from unshard.compare.result import SourcePlace
from unshard.errors import UnshardError


@dataclass(frozen=True, slots=True)
class SourceMoment:
    """The end of a source's binlog, and the target's checkpoint in it, at one moment."""

    newest: LogPlace | None
    applied: LogPlace | None

    @classmethod
    def of(cls, watch: SourceWatch, errors: list[UnshardError]) -> SourceMoment:
        """Ask both ends. What can't be asked is added to `errors`, once."""
        return cls(_place(watch.newest, errors), _place(watch.applied, errors))

    @classmethod
    def from_dict(cls, form: Mapping[str, Any]) -> SourceMoment:
        """Read the form of `to_dict`."""
        places = (form["newest"], form["applied"])
        return cls(*(LogPlace.from_dict(place) if place is not None else None for place in places))

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        places = {"newest": self.newest, "applied": self.applied}
        return {name: place.to_dict() if place is not None else None for name, place in places.items()}

    def until(self, source: str, end: SourceMoment) -> SourcePlace:
        """Return the source's positions from this moment to the end."""
        places = (self.newest, end.newest, end.applied)
        return SourcePlace(source, *(str(place.position) if place is not None else "" for place in places))

    def rested(self, watch: SourceWatch, ended: Mapping[str, SourceMoment], *, reads_log: bool = False) -> bool:
        """Return whether neither the source nor, by the task, the target was written to from this moment to the end.

        `reads_log`: what is between different positions is read, and may be nothing of the task's.
        """
        end = ended[watch.side.source].newest
        if reads_log:
            return watch.unchanged(self.newest, end) and (not watch.followed or watch.unchanged(self.applied, end))
        return end is not None and self.newest == end and (not watch.followed or self.applied == end)


def _place(ask: Callable[[], LogPlace | None], errors: list[UnshardError]) -> LogPlace | None:
    """Return a place; None where the source can't be asked, which is added to the errors of the whole comparison."""
    try:
        return ask()
    except UnshardError as error:
        if not any(str(known) == str(error) for known in errors):
            errors.append(error)
        return None
