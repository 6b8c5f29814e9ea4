"""The DDL that one source table has met and its sharding group has not resolved yet, in the order of the log."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import Any

from unshard.ddl.lex import Token, TokenKind, tokens
from unshard.model.position import Location, Position

Form = dict[str, Any]
Moved = Callable[[Location], Location]
"""From a place in one server's log to the same in another's."""


_LEAVES_COLUMN_OUT = frozenset({"ADD", "ALTER", "CHANGE", "DROP", "MODIFY"})
_MANNERS = frozenset({"ALGORITHM", "LOCK"})
_SAME_WORDS = {"key": "index", "integer": "int"}


def normalised(statement: str) -> str:
    """What two statements have in common that do the same: no comments, blanks, quotes of names, case of words.

    Nor what says how and not what (`ALGORITHM=…`, `LOCK=…`), a COLUMN that may be left out, another word for the same.
    """
    return " ".join(map(_normal, _telling(tokens(statement))))


def _normal(token: Token) -> str:
    if token.kind in (TokenKind.STRING, TokenKind.SYMBOL):
        return token.value
    text = token.value.lower()
    return _SAME_WORDS.get(text, text) if token.kind is TokenKind.WORD else text


def _telling(found: Sequence[Token]) -> list[Token]:
    """The tokens that tell what a statement does."""
    kept: list[Token] = []
    at = 0
    while at < len(found):
        if found[at].word in _MANNERS and at + 2 < len(found) and found[at + 1].is_symbol("="):
            at += 3
            if kept and kept[-1].is_symbol(","):
                kept.pop()
            elif at < len(found) and found[at].is_symbol(","):
                at += 1
            continue
        if found[at].word != "COLUMN" or not kept or kept[-1].word not in _LEAVES_COLUMN_OUT:
            kept.append(found[at])
        at += 1
    while kept and kept[-1].is_symbol(";"):
        kept.pop()
    return kept


def same(one: Sequence[str], other: Sequence[str]) -> bool:
    """Whether two lists of statements are the same DDL."""
    return len(one) == len(other) and all(map(_equal, one, other))


def _equal(one: str, other: str) -> bool:
    return one == other or normalised(one) == normalised(other)


def side_by_side(name: str, mine: Sequence[str], other: str, theirs: Sequence[str]) -> str:
    """Two lists of statements under each other, number by number, `<>` where they differ."""
    lines = []
    for number, (left, right) in enumerate(zip_longest(mine, theirs, fillvalue=""), 1):
        mark = "==" if left and right and _equal(left, right) else "<>"
        lines += [f"{number} {mark} {name}: {left or 'nothing yet'}", f"     {other}: {right or 'nothing yet'}"]
    return "\n       ".join(lines)


@dataclass(frozen=True, slots=True)
class DdlItem:
    """One statement that a table has met: where it begins and ends in the log, and what it is on the target.

    `ddls` name the target table. `payload` is the caller's own, in JSON. `time`: when it was met, ISO 8601.
    """

    begin: Location
    end: Location
    ddls: tuple[str, ...]
    payload: Mapping[str, Any] = field(default_factory=dict)
    time: str = ""

    def at(self, place: Location) -> DdlItem:
        """The same statement as a table has it that begins its life behind it, at `place`."""
        return DdlItem(place, place, self.ddls, self.payload, self.time)

    def moved(self, to: Moved) -> DdlItem:
        """The same in another log."""
        return replace(self, begin=to(self.begin), end=to(self.end))

    def __str__(self) -> str:
        return f"{'; '.join(self.ddls)} ({self.begin.position})"

    def to_dict(self) -> Form:
        return {
            "begin": place_form(self.begin),
            "end": place_form(self.end),
            "ddls": list(self.ddls),
            "payload": dict(self.payload),
            "time": self.time,
        }

    @classmethod
    def from_dict(cls, form: Form) -> DdlItem:
        begin, end = place_of(form["begin"]), place_of(form["end"])
        return cls(begin, end, tuple(form["ddls"]), form["payload"], form["time"])


@dataclass(frozen=True, slots=True)
class ShardingSequence:
    """Unresolved items of one table; the first is the one that its group resolves next."""

    items: tuple[DdlItem, ...] = ()

    def __len__(self) -> int:
        return len(self.items)

    def statements(self) -> list[str]:
        """One text an item, with its position."""
        return [str(item) for item in self.items]


def place_form(place: Location) -> list[Any]:
    """A location in JSON."""
    return [place.position.file, place.position.offset, place.gtid]


def place_of(form: Sequence[Any]) -> Location:
    """What `place_form` wrote."""
    file, offset, gtid = form
    return Location(Position(file, offset), gtid)
