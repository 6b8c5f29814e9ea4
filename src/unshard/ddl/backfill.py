"""The values that an ALTER TABLE writes into existing rows, and whether another run of it writes the same ones.

The last column tells whether a run on the target, with `SET TIMESTAMP` to the event's time, writes what the source has.

| the new column | values in existing rows of the source | equal on the target |
|---|---|---|
| no DEFAULT, a constant, an expression over other columns | the same in every run | yes |
| an expression over a column that a column mapping writes, or over one that is filled unlike | those of that row | no |
| DEFAULT CURRENT_TIMESTAMP, CURDATE() | the time of the statement, which differs between shards | yes |
| such a DEFAULT, added by an online-DDL tool | the time at which the tool copied the row | no |
| any, in place of a column of that name, added by an online-DDL tool | those that the tool copied by name | no |
| DEFAULT UUID(), RAND(), SYSDATE(), NEXTVAL(…), CURRENT_USER() | unpredictable | no |
| AUTO_INCREMENT, also of a column that becomes it and is NULL or 0 | numbers by the order of the rows | `same_order` |

`conversions.py` tells it of the old values of a column that gets another type.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from itertools import pairwise

from unshard.ddl.alter_parts import alter_parts
from unshard.ddl.cursor import tokens_of
from unshard.ddl.intent import Step, Structures
from unshard.ddl.modified import named_column
from unshard.ddl.parse import classify_ddl
from unshard.ddl.statement import StatementKind
from unshard.model.table import Index, Table, quote_name
from unshard.mysql.defaults import column_lines, computed_default
from unshard.schema.lex import Token, TokenKind, tokens

_OF_THE_EVENT = frozenset(
    {
        "CURRENT_TIMESTAMP", "NOW", "LOCALTIME", "LOCALTIMESTAMP", "UNIX_TIMESTAMP", "CURDATE", "CURRENT_DATE",
        "CURTIME", "CURRENT_TIME", "UTC_DATE", "UTC_TIME", "UTC_TIMESTAMP",
    }
)  # fmt: skip
"""Functions that give the time of the statement, which its event holds."""

_OF_THE_RUN = frozenset(
    {
        "SYSDATE", "UUID", "UUID_SHORT", "UUID_V4", "UUID_V7", "SYS_GUID", "RAND", "RANDOM_BYTES",
        "ENCRYPT", "DES_ENCRYPT",
        "NEXTVAL", "LASTVAL", "NEXT", "PREVIOUS", "LAST_INSERT_ID", "ROW_COUNT", "FOUND_ROWS",
        "CONNECTION_ID", "USER", "CURRENT_USER", "SESSION_USER", "SYSTEM_USER", "CURRENT_ROLE",
        "DATABASE", "SCHEMA", "VERSION", "PS_CURRENT_THREAD_ID", "PS_THREAD_ID",
    }
)  # fmt: skip

_PARTITIONS = re.compile(r"\bPARTITION BY\b.*", re.DOTALL | re.IGNORECASE)


def filled_by_the_run(step: Step, rewritten: frozenset[str] = frozenset()) -> tuple[str, ...]:
    """Return the columns that the step adds and fills with values that another run would not give again. Pure.

    `rewritten`: the columns, in lower case, in which the target's rows have other values than the source's.
    """
    words, kept = _OF_THE_RUN | _OF_THE_EVENT, _kept_by_tool(step)
    added = _added(step).items()
    found = {name for name, line in added if _is_numbered(line) or _computes_with(line, words) or name.lower() in kept}
    return _with_computed_from(step, found, rewritten)


def filled_unlike_upstream(
    step: Step, upstream: Table | None = None, rewritten: frozenset[str] = frozenset()
) -> tuple[str, ...]:
    """Return the columns that the step adds and fills with other values than the source has. Pure.

    AUTO_INCREMENT columns are not among them. `upstream`: the source's table before the whole statement, of which the
    step may be a part. `rewritten` as for `filled_by_the_run`.
    """
    words = _OF_THE_RUN | _OF_THE_EVENT if step.context.by_tool else _OF_THE_RUN
    kept = _kept_by_tool(step, upstream)
    found = {name for name, line in _added(step).items() if _computes_with(line, words) or name.lower() in kept}
    return _with_computed_from(step, found, rewritten)


def numbered(step: Step) -> tuple[str, str] | None:
    """Return the column that the step makes AUTO_INCREMENT, and the SQL condition of the rows that get a number by it.

    The condition is "" where all rows get one. None where the step makes no column AUTO_INCREMENT. Pure.
    """
    if step.kind is not StatementKind.ALTER_TABLE:
        return None
    for name, line in _added(step).items():
        if _is_numbered(line):
            return name, ""
    before = {name.lower(): line for name, line in _columns(step, step.before).items()}
    for body in _parts(step):
        old = named_column(body)
        if old is not None and any(token.word in ("AUTO_INCREMENT", "SERIAL") for token in body):
            if _is_numbered(before.get(old.lower(), "")):
                return None
            return old, f"{quote_name(old)} IS NULL OR {quote_name(old)} = 0"
    return None


def same_order(one: Table, other: Table) -> bool:
    """Return whether an ALTER reads two tables with the same rows in the same order. Pure."""
    if not _clustered(one) or _clustered(one) != _clustered(other) or _partitions(one) != _partitions(other):
        return False
    names = {name for index in _clustered(one) for name in index.columns}
    ways = [[(table.column(name).collation, table.column(name).members) for name in names] for table in (one, other)]
    return ways[0] == ways[1] and all("ENGINE=INNODB" in table.create_sql.upper() for table in (one, other))


def _clustered(table: Table) -> list[Index]:
    """Return the keys of which InnoDB takes the first one as clustered index; none where it makes a hidden one."""
    whole = [index for index in table.unique_keys if not any(index.prefixes)]
    nullable = {column.name for column in table.columns if column.nullable}
    known = {column.name for column in table.columns}  # a key over an expression has a part without a name
    fit = [index for index in whole if known.issuperset(index.columns) and nullable.isdisjoint(index.columns)]
    return [index for index in table.unique_keys if index.primary] or fit


def _partitions(table: Table) -> str:
    found = _PARTITIONS.search(table.create_sql)
    return "".join(found[0].split()) if found else ""


def _added(step: Step) -> dict[str, str]:
    """Return each column that the step adds, with its line in the structure after the step."""
    if step.kind is not StatementKind.ALTER_TABLE:
        return {}
    had = {name.lower() for name in _columns(step, step.before)}
    after = _columns(step, step.after)
    named = set()
    for body in _parts(step):
        if body[0].word != "ADD":
            continue
        rest = [token for token in body[1:] if token.word != "COLUMN" and not token.is_symbol("(")]
        conditional = [token.word for token in rest[:3]] == ["IF", "NOT", "EXISTS"]
        name = rest[3 if conditional else 0].value.lower()
        if not (conditional and name in had):
            named.add(name)
    return {name: line for name, line in after.items() if name.lower() in named}


def computed_from(lines: Mapping[str, str], unlike: frozenset[str], more: Collection[str] = ()) -> frozenset[str]:
    """Return, in lower case, the columns that are computed from those of `unlike`, directly or by way of each other.

    They are generated columns, and those of `more` that have an expression as default. `lines` are a table's
    `column_lines`. Pure.
    """
    sources: dict[str, set[str]] = {}
    for name, line in lines.items():
        default = computed_default(line) if name in more else None
        if default is not None or is_generated(line):
            found = tokens(default or line)
            sources[name.lower()] = {one.value.lower() for one in found if one.kind in (TokenKind.NAME, TokenKind.WORD)}
    reached: frozenset[str] = frozenset()
    while beyond := {name for name, names in sources.items() if name not in reached and names & (unlike | reached)}:
        reached |= beyond
    return reached


def _with_computed_from(step: Step, found: Collection[str], rewritten: frozenset[str]) -> tuple[str, ...]:
    """Return these columns of the step, and those that it adds with a default over one of them or of `rewritten`."""
    added = _added(step)
    if not added:
        return ()
    unlike = rewritten | {name.lower() for name in found}
    unlike |= computed_from(_columns(step, step.after), unlike, added)
    return tuple(name for name, line in added.items() if name.lower() in unlike and not is_generated(line))


def _kept_by_tool(step: Step, upstream: Table | None = None) -> frozenset[str]:
    """Return the columns, in lower case, whose values pt-online-schema-change copies by name into its new table.

    A column of an old name that the statement drops and adds anew keeps the old values in that way.
    """
    if not step.context.by_tool:
        return frozenset()
    own = [column.name for column in upstream.columns] if upstream is not None else []
    return frozenset(name.lower() for name in (*own, *_columns(step, step.before)))


def _parts(step: Step) -> list[list[Token]]:
    """Return the tokens of each operation of an ALTER."""
    found = alter_parts(classify_ddl(step.statement, step.context))
    bodies = ([t for t in tokens_of(part.text, part.context) if t.start >= (part.parts_at or 0)] for part in found)
    return [body for body in bodies if len(body) > 1]


def _columns(step: Step, structures: Structures) -> dict[str, str]:
    """Return each column of the step's table, with its line in `structures`; the step may give it another name."""
    names = (name.quoted for name in classify_ddl(step.statement, step.context).tables)
    return column_lines(next((text for name in names if (text := structures.get(name)) is not None), ""))


def is_generated(line: str) -> bool:
    """Return whether it is the line of a generated column: `GENERATED ALWAYS AS (…)`, or with AS alone."""
    found = tokens(line)
    return any(token.word == "AS" and after.is_symbol("(") for token, after in pairwise(found))


def _is_numbered(line: str) -> bool:
    return any(token.word == "AUTO_INCREMENT" for token in tokens(line))


def _computes_with(line: str, words: frozenset[str]) -> bool:
    default = computed_default(line)
    if default is None:
        return False
    found = tokens(default)
    return any(token.word in words or token.is_symbol("@") for token in found)
