"""Groups findings that have the same problem and remedy: one finding is shown, with the other tables below it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

_TABLE = "\0"


@dataclass(frozen=True, slots=True)
class LocatedFinding:
    """One finding with the check that found it.

    `place` is a source or `target`. `table` is the table that the texts name, "" for none. `mend` is the remedy.
    """

    severity: str
    check: str
    place: str
    text: str
    mend: str
    table: str = ""

    @property
    def head(self) -> str:
        """The check, the place and the problem."""
        return f"{self.check}{f' ({self.place})' if self.place else ''}: {self.text}"


@dataclass(frozen=True, slots=True)
class FindingGroup:
    """A problem and its remedy, worded for the first table. `others` are the tables with the same problem."""

    severity: str
    head: str
    mend: str
    others: tuple[str, ...] = ()

    @property
    def also(self) -> str:
        """A sentence that names the other tables; empty if there are none."""
        if not self.others:
            return ""
        count = "one more table" if len(self.others) == 1 else f"{len(self.others)} more tables"
        return f"The same holds for {count}: {', '.join(self.others)}"

    @property
    def line(self) -> str:
        """The whole group in one line."""
        parts = (self.head, f"What to do: {self.mend}" if self.mend else "", self.also)
        return " ".join(part if part.endswith((".", ";")) else f"{part}." for part in parts if part).rstrip(".")


def grouped(found: Iterable[LocatedFinding]) -> list[FindingGroup]:
    """Return the groups in the order of their first findings.

    The findings of a group differ only in the table's name.
    """
    alike: dict[tuple[str, ...], list[LocatedFinding]] = {}
    for one in found:
        texts = (_without(one.text, one.table), _without(one.mend, one.table))
        alike.setdefault((one.severity, one.check, one.place, *texts), []).append(one)
    return [_group(among) for among in alike.values()]


def _group(among: list[LocatedFinding]) -> FindingGroup:
    first = among[0]
    _, *others = dict.fromkeys(one.table for one in among)
    return FindingGroup(first.severity, first.head, first.mend, tuple(others))


def _without(text: str, table: str) -> str:
    """Return a text with the table's name, plain or quoted for SQL, replaced by a placeholder that is no name."""
    if not table:
        return text
    schema, _, name = table.partition(".")
    return text.replace(f"`{schema}`.`{name}`", _TABLE).replace(table, _TABLE)
