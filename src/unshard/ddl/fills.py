"""What ADD COLUMN puts into rows that are there already: the same at each run, or what only that run gives.

| the new column | the rows get |
|---|---|
| no DEFAULT, a constant, an expression over other columns | the same wherever the statement is run |
| DEFAULT CURRENT_TIMESTAMP, CURDATE() | the time of the run, which is another one for each of several shards |
| DEFAULT UUID(), RAND(), NEXTVAL(…), CURRENT_USER() | what nobody can tell |
| AUTO_INCREMENT | numbers by the order in which the run meets the rows |
"""

from __future__ import annotations

from unshard.ddl.alter_parts import alter_parts
from unshard.ddl.cursor import tokens_of
from unshard.ddl.intent import Step
from unshard.ddl.lex import TokenKind, tokens
from unshard.ddl.parse import classify_ddl
from unshard.ddl.statement import Kind
from unshard.mysql.defaults import column_lines, computed_default

_OF_THE_RUN = frozenset(
    {
        "CURRENT_TIMESTAMP", "NOW", "LOCALTIME", "LOCALTIMESTAMP", "SYSDATE", "UNIX_TIMESTAMP", "CURDATE",
        "CURRENT_DATE", "CURTIME", "CURRENT_TIME", "UTC_DATE", "UTC_TIME", "UTC_TIMESTAMP",
        "UUID", "UUID_SHORT", "UUID_V4", "UUID_V7", "SYS_GUID", "RAND", "RANDOM_BYTES",
        "NEXTVAL", "LASTVAL", "NEXT", "PREVIOUS", "LAST_INSERT_ID", "ROW_COUNT", "FOUND_ROWS",
        "CONNECTION_ID", "USER", "CURRENT_USER", "SESSION_USER", "SYSTEM_USER", "CURRENT_ROLE",
        "DATABASE", "SCHEMA", "VERSION",
    }
)  # fmt: skip


def filled_by_the_run(step: Step) -> tuple[str, ...]:
    """The columns that the step adds and fills with what is not the same at another run of it. Pure."""
    if step.kind is not Kind.ALTER_TABLE:
        return ()
    ddl = classify_ddl(step.statement, step.context)
    named = {
        token.value.lower()
        for part in alter_parts(ddl)
        if any(action.startswith("ADD ") for action in part.actions)
        for token in tokens_of(part.text, part.context)
        if token.kind in (TokenKind.WORD, TokenKind.NAME)
    }
    before, after = (column_lines(texts.get(ddl.tables[0].quoted) or "") for texts in (step.before, step.after))
    had = {name.lower() for name in before}
    new = {name: line for name, line in after.items() if name.lower() not in had and name.lower() in named}
    return tuple(name for name, line in new.items() if _differs(line))


def _differs(line: str) -> bool:
    if any(token.word == "AUTO_INCREMENT" for token in tokens(line)):
        return True
    default = computed_default(line)
    return default is not None and any(token.word in _OF_THE_RUN for token in tokens(default))
