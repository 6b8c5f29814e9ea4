"""Compares two SHOW CREATE texts: they may mean the same although a server may write one structure in several ways.

| written | where it means nothing |
|---|---|
| AUTO_INCREMENT = n | everywhere: it is data |
| CHARACTER SET of a column | before its collation |
| COLLATE of a column | where it is that of the table; MySQL writes it if the statement that made the column did |
| DEFAULT NULL | everywhere: MySQL omits it after ALTER … DROP DEFAULT, and a copy made from that text has it |
| blanks, capitals of keywords, version marks | everywhere |

A server makes names of constraints from the name of their table: `orders_1_chk_1`, `orders_1_ibfk_2`. Where the table
has another name on the target, the constraints have too, as after a RENAME TABLE, for which a server renames them. A
target's table that was not made by this task, or long ago, may have the names of a source's table (`own_names`).

| statement | name |
|---|---|
| DROP CHECK, DROP CONSTRAINT, DROP FOREIGN KEY, DROP KEY, DROP INDEX | what is dropped |
| ALTER CHECK, ALTER CONSTRAINT, ALTER INDEX | what is altered |
| CREATE TABLE, by the text of SHOW CREATE | a constraint's |

All other names are the user's and stay.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from unshard.ddl.cursor import tokens_of
from unshard.ddl.statement import Ddl, StatementKind
from unshard.model.table import Table, quote_name
from unshard.mysql.collations import default_collation
from unshard.schema.lex import TokenKind, tokens

_COUNTER, _NO_DEFAULT, _COLUMN_CHARSET = ["AUTO_INCREMENT", "="], ["DEFAULT", "NULL"], ["CHARACTER", "SET"]


def same(one: str | None, other: str | None) -> bool:
    """Return whether two SHOW CREATE texts of one server product mean the same.

    None: the table is missing.
    """
    return normal(one) == normal(other)


def alike(one: str | None, other: str | None) -> bool:
    """Return whether two texts are `same` apart from plain keys over exactly the columns of a foreign key.

    A server makes such a key for a foreign key, and renames or drops it with later statements. A key that was made by
    the text of SHOW CREATE, as on a copy, stays.
    """
    return _without_made_keys(normal(one)) == _without_made_keys(normal(other))


def adds_only(found: str | None, wanted: str | None) -> bool:
    """Return whether a table has everything in `wanted`, in its order and wording, and maybe more columns and keys."""
    if found is None or wanted is None:
        return found is wanted
    there, asked = (_definitions(normal(text) or ()) for text in (found, wanted))
    rest = iter(there[1:-1])
    return (there[0], there[-1]) == (asked[0], asked[-1]) and all(one in rest for one in asked[1:-1])


def _definitions(parts: Sequence[str]) -> list[tuple[str, ...]]:
    """Return the words before the outer bracket, each definition in it, and the options after it."""
    found: list[list[str]] = [[]]
    depth = 0
    for at, part in enumerate(parts):
        depth += (part == "(") - (part == ")")
        if (part == "(" and depth == 1) or (part == "," and depth == 1):
            found.append([])
        elif part == ")" and depth == 0:
            found.append(list(parts[at:]))
            break
        else:
            found[-1].append(part)
    return [tuple(one) for one in found]


def _without_made_keys(parts: tuple[str, ...] | None) -> tuple[str, ...] | None:
    if parts is None:
        return None
    listed = [_bracket(parts, at + 2) for at in range(len(parts)) if parts[at : at + 2] == ("FOREIGN", "KEY")]
    kept: list[str] = []
    at = 0
    while at < len(parts):
        columns = _bracket(parts, at + 3) if parts[at : at + 2] == (",", "KEY") else ()
        behind = at + 3 + len(columns)
        if columns in listed and parts[behind : behind + 1] in ((",",), (")",)):
            at = behind
        else:
            kept.append(parts[at])
            at += 1
    return tuple(kept)


def _bracket(parts: tuple[str, ...], at: int) -> tuple[str, ...]:
    """Return the bracket that begins at this index up to the first closing one; empty where none begins there."""
    return parts[at : parts.index(")", at) + 1] if parts[at : at + 1] == ("(",) else ()


def normal(text: str | None) -> tuple[str, ...] | None:
    """Return the text in a form that is equal for equal structures. Pure."""
    if text is None:
        return None
    parts = [
        f"`{token.value}`" if token.kind is TokenKind.NAME else token.word or token.value for token in tokens(text)
    ]
    own = _of_table(parts)
    kept: list[str] = []
    at = 0
    while at < len(parts):
        if parts[at : at + 2] == _COUNTER:
            at += 3
        elif parts[at : at + 2] == _NO_DEFAULT:
            at += 2
        elif parts[at : at + 2] == _COLUMN_CHARSET or (parts[at] == "COLLATE" and parts[at + 1 : at + 2] != ["="]):
            collation, at = _of_column(parts, at)
            kept.extend([] if collation == own else ["COLLATE", collation])
        else:
            kept.append(parts[at])
            at += 1
    return tuple(kept)


def _of_column(parts: Sequence[str], at: int) -> tuple[str, int]:
    """Return the collation at this place, given by name or by its character set, and the index after it."""
    charset = ""
    if list(parts[at : at + 2]) == _COLUMN_CHARSET:
        charset, at = parts[at + 2], at + 3
    if list(parts[at : at + 1]) == ["COLLATE"]:
        return parts[at + 1].lower(), at + 2
    return default_collation(charset), at


def _of_table(parts: Sequence[str]) -> str:
    """Return the collation in a table's options; "" where they name none."""
    for at in range(len(parts) - 2):
        if parts[at] == "CHARSET" and parts[at + 1] == "=":
            if list(parts[at + 3 : at + 5]) == ["COLLATE", "="]:
                return parts[at + 5].lower()
            return default_collation(parts[at + 2])
    return ""


_NUMBERED = re.compile(r"(?P<table>.+)(?P<number>_(?:chk|ibfk)_[0-9]+)", re.DOTALL | re.IGNORECASE)
_KINDS = frozenset({"CHECK", "CONSTRAINT", "FOREIGN", "INDEX", "KEY"})
_BETWEEN = frozenset({"KEY", "IF", "EXISTS"})


@dataclass(frozen=True, slots=True)
class OwnName:
    """`text[start:end]` is a constraint's name: that of the statement's own table with `number` after it."""

    number: str
    start: int
    end: int


def own_names(ddl: Ddl) -> Iterator[OwnName]:
    """Yield the names of that form in the statement, in its order."""
    if not _NUMBERED.search(ddl.text) or ddl.kind.on_schema:
        return
    found = tokens_of(ddl.text, ddl.context)
    words = [token.word for token in found]
    for at, pair in enumerate(pairwise(words)):
        made = pair[0] == "CONSTRAINT" and ddl.kind is StatementKind.CREATE_TABLE
        if not made and (pair[0] not in ("DROP", "ALTER") or pair[1] not in _KINDS):
            continue
        named = next((token for token in found[at + (1 if made else 2) :] if token.word not in _BETWEEN), None)
        if named is None or named.kind not in (TokenKind.WORD, TokenKind.NAME):
            continue
        match = _NUMBERED.fullmatch(named.value)
        if match is not None and match["table"].lower() == ddl.tables[0].table.lower():
            yield OwnName(match["number"], named.start, named.end)


def as_it_has(ddl: Ddl, table: Table, sources: Collection[str]) -> str:
    """Return the statement's text with the constraint names that `table` has.

    Such a name is made from the table's own name or from one of `sources`.

    These are names of tables upstream. A name that the table has in neither form stays, for the server to refuse.
    """
    text, there = ddl.text, table.create_sql.lower()
    for name in reversed(list(own_names(ddl))):
        makers = (table.name.table, *sources)
        found = (quote_name(maker + name.number) for maker in makers)
        held = next((quoted for quoted in found if quoted.lower() in there), None)
        if held is not None:
            text = text[: name.start] + held + text[name.end :]
    return text


def without_own_names(table: Table) -> str:
    """Return its SHOW CREATE in the form that tables with other names share."""
    own = re.escape(quote_name(table.name.table)[1:-1])
    return re.sub(rf"`{own}(_(?:chk|ibfk)_[0-9]+)`", r"`\1`", table.create_sql, flags=re.IGNORECASE)
