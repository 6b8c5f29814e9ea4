"""A table that went, or got another name, while changes of its group were held: what the log has of it stays readable.

Only the look for rows that have moved (`sync.moved`) asks for it: such a table is nobody's to wait for any more.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import zip_longest
from typing import Any

from unshard.model.position import Location, Position
from unshard.model.table import TableName, name_form, name_of
from unshard.schema.lex import Token, TokenKind, tokens

# The DDL that one source table has met and its sharding group has not resolved yet, in the order of the log.


Form = dict[str, Any]
Moved = Callable[[Location], Location]
"""From a place in one server's log to the same in another's."""


_LEAVES_COLUMN_OUT = frozenset({"ADD", "ALTER", "CHANGE", "DROP", "MODIFY"})
_MANNERS = {
    "ALGORITHM": frozenset({"COPY", "DEFAULT", "INPLACE", "INSTANT", "NOCOPY"}),
    "LOCK": frozenset({"DEFAULT", "EXCLUSIVE", "NONE", "SHARED"}),
}
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
    """The tokens that tell what a statement does. In brackets `algorithm` is a column."""
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
    """How many tokens say how it is done; 0 where these do not. Without `=` only where no name can stand."""
    if len(found) == 3 and found[0].word in _MANNERS and found[1].is_symbol("="):
        return 3
    begins = bool(before) and (before[-1].is_symbol(",") or before[-1].is_symbol(")"))
    return 2 if begins and len(found) > 1 and found[1].word in _MANNERS.get(found[0].word, ()) else 0


def same(one: Sequence[str], other: Sequence[str]) -> bool:
    """Whether two lists of statements are the same DDL."""
    return len(one) == len(other) and all(map(_equal, one, other))


def _equal(one: str, other: str) -> bool:
    return one == other or normalised(one) == normalised(other)


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


def side_by_side(name: str, mine: Sequence[DdlItem | str], other: str, theirs: Sequence[DdlItem | str]) -> str:
    """Two lists under each other, number by number: `==` where both are the same DDL, `<>` where they differ.

    Behind the first that differs, one that only one of them has is not marked.
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
