"""Findings as a user reads them: those that the same thing mends are one, with their tables listed below it."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace

_TABLE = "TABLE"


@dataclass(frozen=True, slots=True)
class Found:
    """One finding with the check that has it. `place` is a source or the target, `table` what the texts name, or ""."""

    severity: str
    check: str
    place: str
    text: str
    mend: str
    table: str = ""

    @property
    def head(self) -> str:
        """Where and what."""
        return f"{self.check}{f' ({self.place})' if self.place else ''}: {self.text}"


@dataclass(frozen=True, slots=True)
class Group:
    """What is wrong and what mends it, told once. `tables` are empty where the texts name the one table themselves."""

    severity: str
    head: str
    mend: str
    tables: tuple[str, ...] = ()

    @property
    def line(self) -> str:
        """All of it in one line."""
        tables = f" TABLE: {', '.join(self.tables)}" if self.tables else ""
        return f"{self.head}. Mend: {self.mend}{tables}"


def grouped(found: Iterable[Found]) -> list[Group]:
    """Groups in the order of their first findings. Texts of several tables have the word TABLE for each one's name."""
    alike: dict[tuple[str, ...], list[Found]] = {}
    for one in found:
        texts = (_without(one.text, one.table), _without(one.mend, one.table))
        alike.setdefault((one.severity, one.check, one.place, *texts), []).append(one)
    return [_group(among) for among in alike.values()]


def _group(among: list[Found]) -> Group:
    first = among[0]
    tables = tuple(dict.fromkeys(one.table for one in among))
    if len(tables) == 1:
        return Group(first.severity, first.head, first.mend)
    shared = replace(first, text=_without(first.text, first.table), mend=_without(first.mend, first.table))
    return Group(shared.severity, shared.head, shared.mend, tables)


def _without(text: str, table: str) -> str:
    """A text with the word TABLE for the table's name, as it stands and as SQL quotes it."""
    if not table:
        return text
    schema, _, name = table.partition(".")
    return text.replace(f"`{schema}`.`{name}`", _TABLE).replace(table, _TABLE)
