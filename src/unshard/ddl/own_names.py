"""Names of constraints that a server makes from the name of their table: `orders_1_chk_1`, `orders_1_ibfk_2`.

Where the table has another name on the target, the constraints have too, as after a RENAME TABLE, for which a server
renames them. A target's table that was not made by this task, or long ago, may have the names of a source's table.

| statement | name |
|---|---|
| DROP CHECK, DROP CONSTRAINT, DROP FOREIGN KEY, DROP KEY, DROP INDEX | what is dropped |
| ALTER CHECK, ALTER CONSTRAINT, ALTER INDEX | what is altered |
| CREATE TABLE, by the text of SHOW CREATE | a constraint's |

All other names are the user's and stay.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from itertools import pairwise

from unshard.ddl.cursor import tokens_of
from unshard.ddl.statement import Ddl, StatementKind
from unshard.model.table import Table, quote_name
from unshard.schema.lex import TokenKind

_NUMBERED = re.compile(r"(?P<table>.+)(?P<number>_(?:chk|ibfk)_[0-9]+)", re.DOTALL | re.IGNORECASE)
_KINDS = frozenset({"CHECK", "CONSTRAINT", "FOREIGN", "INDEX", "KEY"})
_BETWEEN = frozenset({"KEY", "IF", "EXISTS"})


@dataclass(frozen=True, slots=True)
class OwnName:
    """A constraint's name in a statement, at `text[start:end]`: the name of the statement's table and then `number`."""

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
