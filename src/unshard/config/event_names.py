"""The words of `events` in a binlog event filter, and whether a list of them matches an event.

The names are DM's. A list is read in order, and the first word that applies to the event decides:

| word | of which events | says |
|---|---|---|
| `all`, `all dml`, `all ddl` | every one, those of rows, those of statements | matched |
| `none`, `none dml`, `none ddl` | the same | not matched |
| `incompatible ddl changes` | statements that DM's list calls so (`INCOMPATIBLE`) | matched |
| a name | that event | matched |
| the end of the list | every one | not matched |
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import AfterValidator

from unshard.config.problems import suggestion

ROW_EVENTS = ("insert", "update", "delete")

PLAIN_DDL = frozenset(
    {
        "create database", "alter database", "create table", "create index", "create view", "drop view",
        "alter table", "add table partition",
    }
)  # fmt: skip
"""Statements that `incompatible ddl changes` does not match."""

INCOMPATIBLE = frozenset(
    {
        "drop database", "drop table", "drop index", "rename table", "truncate table", "drop table partition",
        "truncate table partition", "value range decrease", "precision decrease", "modify column", "rename column",
        "rename index", "drop column", "drop primary key", "drop unique key", "modify default value",
        "modify constraint", "modify columns order", "modify charset", "modify collation", "remove auto increment",
        "modify storage engine", "reorganize table partition", "rebuild table partition", "coalesce table partition",
        "split table partition", "exchange table partition", "add foreign key", "drop foreign key",
        "modify schema charset and collate", "modify table charset and collate", "modify table comment",
        "recover table", "alter table partitioning", "remove table partitioning", "add column", "set default value",
        "rebase auto id", "add primary key", "alter index visibility", "alter ttl info", "alter ttl remove",
        "multi schema change",
    }
)  # fmt: skip

WITHOUT_STATEMENT = frozenset({"recover table"})
"""Names for which neither MySQL nor MariaDB has a statement."""

_INCOMPATIBLE = "incompatible ddl changes"
_WHOLE = ("all", "all dml", "all ddl", "none", "none dml", "none ddl", _INCOMPATIBLE)
_ALIASES = {"create schema": "create database", "alter schema": "alter database", "drop schema": "drop database"}
_ALIASES |= {"truncate": "truncate table"}


@dataclass(frozen=True, slots=True)
class EventName:
    """The names of a row change, or of one part of a statement.

    `name` is DM's name; `also` are exact names that DM itself never assigns. Whether the event is incompatible follows
    from `name` alone. ADD COLUMN is DM's `alter table`, and has `add column` in `also`.
    """

    name: str
    also: frozenset[str] = frozenset()

    @property
    def of_rows(self) -> bool:
        """True if it is a row change."""
        return self.name in ROW_EVENTS


def event_word(text: str) -> str:
    """Return a word of `events` in its normal form. Raises ValueError for an unknown word."""
    word = " ".join(text.lower().split())
    word = _ALIASES.get(word, word)
    known = (*_WHOLE, *ROW_EVENTS, *sorted(PLAIN_DDL | INCOMPATIBLE))
    if word not in known:
        raise ValueError(f"`{text}` is no event{suggestion(word, [*known, *_ALIASES])}")
    return word


EventWord = Annotated[str, AfterValidator(event_word)]
"""A word of `events`, in lower case and without aliases."""


def matches(words: Iterable[str], event: EventName) -> bool:
    """Return whether the list matches the event."""
    return next((said for said in (_says(word, event) for word in words) if said is not None), False)


def list_fault(words: Sequence[str]) -> str | None:
    """Return the faults of a list by itself: a repeated word, or one that the words before it make useless."""
    for place, word in enumerate(words):
        if word in words[:place]:
            return f"`{word}` is listed twice; keep one"
        own = [event for event in ALL_EVENTS if _says(word, event) is not None]
        before = [matches(words[:place], event) for event in own if _spoken(words[:place], event)]
        positive = not word.startswith("none")
        if len(before) == len(own) and before and all(said != positive for said in before):
            return f"`{word}` comes too late: the words before it decide all that it is for; put it first"
    return None


def matches_any(words: Sequence[str]) -> bool:
    """Return whether the list matches any event at all."""
    return any(matches(words, event) for event in ALL_EVENTS)


def _says(word: str, event: EventName) -> bool | None:
    if word in ("all", "none"):
        return word == "all"
    if word in ("all dml", "none dml"):
        return word == "all dml" if event.of_rows else None
    if word in ("all ddl", "none ddl"):
        return None if event.of_rows else word == "all ddl"
    if word == _INCOMPATIBLE:
        return True if event.name in INCOMPATIBLE else None
    return True if word == event.name or word in event.also else None


def _spoken(words: Iterable[str], event: EventName) -> bool:
    return any(_says(word, event) is not None for word in words)


ALL_EVENTS = tuple(
    EventName(name) for name in (*ROW_EVENTS, *sorted(PLAIN_DDL), *sorted(INCOMPATIBLE - WITHOUT_STATEMENT))
)
"""One event of each kind that can occur."""
