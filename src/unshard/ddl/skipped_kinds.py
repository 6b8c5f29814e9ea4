"""Kinds of statements that are skipped: they concern no table's structure or rows (reference of DM, section 5.2)."""

from __future__ import annotations

import re
from collections.abc import Sequence

from unshard.schema.lex import Token, TokenKind

_DEFINER = r"DEFINER = \S+(?: @ \S+| \( \))? "
_MODIFIERS = rf"(?:OR REPLACE |{_DEFINER}|ALGORITHM = \S+ |SQL SECURITY \S+ |AGGREGATE )*"
_ANY = rf"(?:CREATE|ALTER|DROP|RENAME) {_MODIFIERS}"

RULES: tuple[tuple[str, str], ...] = (
    ("savepoint", r"SAVEPOINT"),
    ("flush", r"FLUSH"),
    ("table maintenance", r"(?:OPTIMIZE|ANALYZE|REPAIR) (?:(?:NO_WRITE_TO_BINLOG|LOCAL) )?TABLES?"),
    ("temporary table", r"DROP TEMPORARY TABLES?|(?:CREATE (?:OR REPLACE )?|DROP )TEMPORARY SEQUENCES?"),
    ("trigger", rf"{_ANY}TRIGGER"),
    ("procedure", rf"{_ANY}(?:PROCEDURE|PACKAGE)"),
    ("view", rf"{_ANY}(?:MATERIALIZED |JSON (?:RELATIONAL )?DUALITY )?{_MODIFIERS}VIEW"),
    ("view", r"REPAIR (?:(?:NO_WRITE_TO_BINLOG|LOCAL) )?VIEW"),
    ("function", rf"{_ANY}FUNCTION"),
    ("tablespace", r"(?:CREATE|ALTER|DROP) (?:UNDO |LOGFILE )?(?:TABLESPACE|GROUP)"),
    ("event", rf"{_ANY}EVENT"),
    ("library", rf"{_ANY}LIBRARY"),
    ("spatial reference system", rf"{_ANY}SPATIAL REFERENCE SYSTEM"),
    ("server", r"(?:CREATE|ALTER|DROP) (?:OR REPLACE )?(?:SERVER|INSTANCE)|(?:UN)?INSTALL"),
    ("account", rf"GRANT|REVOKE|{_ANY}(?:USER|ROLE)|SET PASSWORD|SET DEFAULT ROLE"),
)
"""Reason and pattern for a statement's head: words in capitals, one blank between tokens. The first match counts."""

_PATTERNS = tuple((reason, re.compile(rf"(?:{pattern})(?= |$)")) for reason, pattern in RULES)
_HEAD_TOKENS = 32


def skip_reason(statement: Sequence[Token]) -> str | None:
    """Return the reason of the rule by which the statement is skipped, or None. For comments alone it is `empty`."""
    if not statement:
        return "empty"
    head = " ".join(_shape(token) for token in statement[:_HEAD_TOKENS])
    return next((reason for reason, pattern in _PATTERNS if pattern.match(head)), None)


def _shape(token: Token) -> str:
    if token.kind is TokenKind.WORD:
        return token.word
    return token.value if token.kind is TokenKind.SYMBOL else "`"
