"""The reading of table names in a statement, and of the end of a table's body."""

from __future__ import annotations

from collections.abc import Sequence

from unshard.ddl.cursor import Cursor
from unshard.ddl.statement import NamePlace, TableRole
from unshard.model.table import TableName
from unshard.schema.lex import Token


def read_table(at: Cursor, role: TableRole) -> NamePlace:
    """Read a table name: `t`, `s.t` or `.t`, with blanks and comments around the dot. Raises DdlError DDL-002."""
    start = at.tokens[at.at].start if at.at < len(at.tokens) else 0
    leading_dot = at.take_symbol(".")
    first = at.identifier()
    if first is None:
        raise at.refuse("a table's name is missing")
    if not leading_dot and at.take_symbol("."):
        second = at.identifier()
        if second is None:
            raise at.refuse("a table's name is missing")
        return NamePlace(TableName(at.folded(first.value), at.folded(second.value)), role, start, second.end)
    if not at.context.schema:
        raise at.refuse(f"table {first.value} has no schema, and the statement no default one")
    return NamePlace(TableName(at.context.schema, at.folded(first.value)), role, start, first.end)


_DEEPEST_COLUMN = 2
"""Statement, and brackets with columns in it: CREATE TABLE t (…), ADD (…)."""
_TWO_WORDS = frozenset({"RENAME", "ADD", "DROP", "ALTER", "DEFAULT", "CONVERT"})


def mentions(at: Cursor) -> tuple[NamePlace, ...]:
    """Read the names after REFERENCES and in UNION = (…), up to the end of the statement."""
    found: list[NamePlace] = []
    while at.at < len(at.tokens) and not at.tokens[at.at].is_symbol(";"):
        _step(at, found)
    return tuple(found)


_OF_COLUMNS = frozenset({"ADD", "MODIFY", "CHANGE", "CONVERT"})
"""Words of an ALTER TABLE behind which a character set is that of columns."""


def alter_names(at: Cursor) -> tuple[tuple[NamePlace, ...], frozenset[str]]:
    """Read every further name of an ALTER TABLE, in order, and the first words of its parts, up to its end."""
    found: list[NamePlace] = []
    actions: set[str] = set()
    depth = 0
    begins = True
    while at.at < len(at.tokens) and not at.tokens[at.at].is_symbol(";"):
        token = at.tokens[at.at]
        if begins:
            actions.add(f"{token.word} {at.word(1)}" if token.word in _TWO_WORDS else token.word)
        here, begins = begins, False
        if depth == 0 and (place := _named_table(at, first_of_part=here)) is not None:
            found.append(place)
            continue
        if token.is_symbol("("):
            depth += 1
        elif token.is_symbol(")"):
            depth -= 1
        elif token.is_symbol(",") and depth == 0:
            begins = True
        _step(at, found)
    return tuple(found), frozenset(actions)


def body_end(statement: Sequence[Token]) -> int | None:
    """Return the end in the text of a CREATE TABLE's first bracket, that of its columns; None without one."""
    depth = 0
    for token in statement:
        if token.is_symbol("("):
            depth += 1
        elif token.is_symbol(")"):
            depth -= 1
            if depth == 0:
                return token.end
    return None


def says_charset(statement: Sequence[Token], body: int) -> bool:
    """Return whether a CREATE TABLE names a character set or collation after its columns.

    Those of columns don't count.
    """
    depth = 0
    for place, token in enumerate(statement):
        if token.end <= body:
            continue
        depth += token.is_symbol("(") - token.is_symbol(")")
        if depth == 0 and (token.word == "COLLATE" or _charset_behind(statement, place)):
            return True
    return False


def names_charset_alone(statement: Sequence[Token], charset: str) -> bool:
    """Return whether a part of a DDL statement names that character set and no collation.

    A part is a column, one operation of an ALTER, or the options of a table or schema, all together, for commas may
    stand between them. Expressions don't count.
    """
    path, named, collated, operations = [0], set(), set(), set()
    for place, token in enumerate(statement):
        if token.is_symbol("("):
            path.append(0)
        elif token.is_symbol(")"):
            path = path[:-1] or [0]
        elif token.is_symbol(","):
            path[-1] += 1
        elif len(path) > _DEEPEST_COLUMN:
            continue
        elif len(path) == 1 and token.word in _OF_COLUMNS:
            operations.add(tuple(path))
        elif token.word in ("COLLATE", "BINARY"):
            collated.add(tuple(path))
        elif _charset_behind(statement, place) == charset:
            named.add(tuple(path))
    alone, of_table = named - collated, [one for one in named | collated if len(one) == 1 and one not in operations]
    return bool(alone.difference(of_table)) or (any(one in named for one in of_table) and collated.isdisjoint(of_table))


def _charset_behind(statement: Sequence[Token], place: int) -> str:
    """Return the name after CHARSET, CHARACTER SET or CHAR SET if the last of these words is there; "" otherwise."""
    before = statement[place - 1].word if place else ""
    if statement[place].word != "CHARSET" and (statement[place].word != "SET" or before not in ("CHARACTER", "CHAR")):
        return ""
    found = next((token for token in statement[place + 1 :] if not token.is_symbol("=")), None)
    name = found.value.strip("'\"").lower() if found is not None else ""
    return "utf8mb3" if name == "utf8" else name


def _named_table(at: Cursor, *, first_of_part: bool) -> NamePlace | None:
    """Read the table named by RENAME TO, EXCHANGE … WITH TABLE or CONVERT … here.

    None where there is none; the cursor stays.
    """
    if first_of_part and at.word() == "RENAME" and at.word(1) not in ("COLUMN", "INDEX", "KEY", "CONSTRAINT"):
        at.take("RENAME")
        at.take("TO") or at.take("AS") or at.take_symbol("=")
        return read_table(at, TableRole.NEW)
    if at.take("WITH", "TABLE"):
        return read_table(at, TableRole.OBJECT)
    if first_of_part and at.take("CONVERT", "TABLE"):
        return read_table(at, TableRole.OBJECT)
    if at.take("TO", "TABLE"):
        return read_table(at, TableRole.NEW)
    return None


def _step(at: Cursor, found: list[NamePlace]) -> None:
    """Move past one token and the names that follow it."""
    previous = at.tokens[at.at - 1]
    token = at.tokens[at.at]
    at.at += 1
    if previous.is_symbol("."):
        return
    if token.word == "REFERENCES":
        found.append(read_table(at, TableRole.MENTION))
    elif token.word == "UNION":
        at.take_symbol("=")
        if at.take_symbol("("):
            found.append(read_table(at, TableRole.MENTION))
            while at.take_symbol(","):
                found.append(read_table(at, TableRole.MENTION))
