"""The DDL that a source table has met and its group has not resolved, and tables dropped or renamed meanwhile.

A table that was dropped or renamed while changes of its group waited stays on record (`Gone`), so that its changes in
the log stay readable. Only the search for rows that have moved (`sync/sharding/moved_rows.py`) needs that: nobody waits
for such a table any more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import Any

from unshard.model.position import Location, Position
from unshard.model.table import TableName, name_form, name_of
from unshard.schema.lex import Token, TokenKind, tokens

Form = dict[str, Any]
Moved = Callable[[Location], Location]
"""Translates a location in one server's log to the same location in another server's."""


_LEAVES_COLUMN_OUT = frozenset({"ADD", "ALTER", "CHANGE", "DROP", "MODIFY"})
_MANNERS = {
    "ALGORITHM": frozenset({"COPY", "DEFAULT", "INPLACE", "INSTANT", "NOCOPY"}),
    "LOCK": frozenset({"DEFAULT", "EXCLUSIVE", "NONE", "SHARED"}),
}
_SAME_WORDS = {"key": "index", "integer": "int"}


def normalised(statement: str) -> str:
    """Return a statement's text in a form that is equal for statements which do the same.

    It leaves out comments, blanks, quotes of names, the case of words, how a statement is run (`ALGORITHM=…`,
    `LOCK=…`), and a COLUMN that may be omitted; synonyms become one word.
    """
    return " ".join(map(_normal, _telling(tokens(statement))))


def _normal(token: Token) -> str:
    if token.kind in (TokenKind.STRING, TokenKind.SYMBOL):
        return token.value
    text = token.value.lower()
    return _SAME_WORDS.get(text, text) if token.kind is TokenKind.WORD else text


def _telling(found: Sequence[Token]) -> list[Token]:
    """Return the tokens that say what a statement does. In brackets `algorithm` is a column's name."""
    kept: list[Token] = []
    at = depth = 0
    while at < len(found):
        depth += found[at].is_symbol("(") - found[at].is_symbol(")")
        if depth == 0 and (length := _manner(found[at : at + 3], kept)):
            at += length
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


def _manner(found: Sequence[Token], before: Sequence[Token]) -> int:
    """Return how many tokens at the beginning say how the statement is run; 0 if they don't.

    Without `=` they do so only where no name is possible.
    """
    if len(found) == 3 and found[0].word in _MANNERS and found[1].is_symbol("="):
        return 3
    begins = bool(before) and (before[-1].is_symbol(",") or before[-1].is_symbol(")"))
    return 2 if begins and len(found) > 1 and found[1].word in _MANNERS.get(found[0].word, ()) else 0


def same(one: Sequence[str], other: Sequence[str]) -> bool:
    """Return whether two lists of statements are the same DDL."""
    return len(one) == len(other) and all(map(_equal, one, other))


def _equal(one: str, other: str) -> bool:
    return one == other or normalised(one) == normalised(other)


@dataclass(frozen=True, slots=True)
class DdlItem:
    """A statement that a table has met.

    `begin`, `end`: where it lies in the log; where the table's copy has the statement, `end` is the copy's snapshot.
    `ddls`: its statements, which name the target table. `payload`: the caller's own, in JSON. `time`: when it was met,
    ISO 8601.
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
    """The unresolved items of one table; the first is the one that its group resolves next."""

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


@dataclass(frozen=True, slots=True)
class Gone:
    """A table that was dropped or renamed while changes of its group waited.

    `at`: the begin of its DROP or RENAME. `became`: its new name, if it was renamed. `last`: the structure that it had
    there. `met`: the statements that it had met before, as far as the group had them on record.
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
