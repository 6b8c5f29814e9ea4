"""The privileges of an account, parsed from SHOW GRANTS of its own session: both flavours, roles, partial revokes.

SHOW GRANTS of a session includes the privileges of its active roles: MySQL merges them into the account's own lines,
MariaDB adds lines of the role. A role that is granted but not active adds nothing, and its `GRANT role TO` line is
ignored.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from unshard.model.table import TableName, quote_name, quote_text

_TOKEN = re.compile(r"`(?:[^`]|``)*`|\"(?:[^\"]|\"\")*\"|'(?:[^'\\]|''|\\.)*'|[\w$%]+|\S")
_ALIASES = {"REPLICATION CLIENT": "BINLOG MONITOR", "REPLICATION REPLICA": "REPLICATION SLAVE", "ALL": "ALL PRIVILEGES"}
"""Other names of a privilege, with the one that this module uses.

The name that a server prints depends on its flavour and version.
"""

_NOT_IN_ALL = frozenset({"GRANT OPTION", "PROXY"})
_OTHER_OBJECTS = frozenset({"FUNCTION", "PROCEDURE", "PACKAGE", "LIBRARY"})


@dataclass(frozen=True, slots=True)
class Grant:
    """One line of SHOW GRANTS.

    `schema` and `table` are `*` for everything. In a GRANT on a whole schema, `schema` is a pattern.
    """

    privileges: frozenset[str]
    schema: str
    table: str
    grantee: str
    revoked: bool = False

    def gives(self, privilege: str) -> bool:
        """Return whether the line grants the privilege on its schema and table."""
        everything = "ALL PRIVILEGES" in self.privileges and privilege not in _NOT_IN_ALL
        return everything or privilege in self.privileges


@dataclass(frozen=True, slots=True)
class Grants:
    """The privileges of one session.

    `literal`: `_` and `%` in schema names have no special meaning (MySQL's `partial_revokes`). If several schema
    patterns match, only the most exact one of each grantee applies, as on the server.
    """

    lines: tuple[Grant, ...]
    literal: bool = False

    @classmethod
    def read(cls, lines: Iterable[str], *, literal: bool = False) -> Grants:
        """Parse the lines of SHOW GRANTS, as any sql_mode prints them."""
        return cls(tuple(grant for line in lines if (grant := _parse(line)) is not None), literal)

    def everywhere(self, privilege: str) -> bool:
        """Return whether the privilege is granted on `*.*`, whatever was revoked on single schemas."""
        wanted = _one_name(privilege)
        return any(grant.schema == "*" and not grant.revoked and grant.gives(wanted) for grant in self.lines)

    def by_name(self, privilege: str) -> bool:
        """Return whether the privilege is granted on `*.*` by its own name.

        For privileges that ALL PRIVILEGES does not include.
        """
        return any(grant.schema == "*" and privilege in grant.privileges for grant in self.lines)

    def anywhere(self, privilege: str) -> bool:
        """Return whether the privilege is granted on anything at all."""
        return any(not grant.revoked and grant.gives(_one_name(privilege)) for grant in self.lines)

    def on_schema(self, privilege: str, schema: str) -> bool:
        """Return whether the privilege is granted on all of a schema."""
        wanted = _one_name(privilege)
        revoked = any(grant.revoked and grant.schema == schema and grant.gives(wanted) for grant in self.lines)
        if self.everywhere(wanted) and not revoked:
            return True
        best: dict[str, tuple[int, bool]] = {}
        for grant in self.lines:
            if grant.schema == "*" or grant.table != "*" or grant.revoked or not self._matches(grant.schema, schema):
                continue
            exact = _exactness(grant.schema, self.literal)
            known, gives = best.get(grant.grantee, (-1, False))
            if exact >= known:
                best[grant.grantee] = (exact, grant.gives(wanted) or (exact == known and gives))
        return any(gives for _, gives in best.values())

    def within(self, privilege: str, schema: str) -> bool:
        """Return whether the privilege is granted on all of a schema, or on any table of it."""
        wanted = _one_name(privilege)
        tables = (grant for grant in self.lines if grant.table != "*" and grant.schema == schema)
        return self.on_schema(wanted, schema) or any(grant.gives(wanted) for grant in tables)

    def on_table(self, privilege: str, name: TableName) -> bool:
        """Return whether the privilege is granted on all columns of a table."""
        if self.on_schema(privilege, name.schema):
            return True
        wanted, place = _one_name(privilege), (name.schema, name.table)
        return any((grant.schema, grant.table) == place and grant.gives(wanted) for grant in self.lines)

    def _matches(self, pattern: str, schema: str) -> bool:
        return pattern == schema if self.literal else _like(pattern).fullmatch(schema) is not None


def schema_clause(schema: str, *, literal: bool = False) -> str:
    """Return the `schema`.* of a GRANT that means exactly this schema."""
    text = schema if literal else re.sub(r"([_%\\])", r"\\\1", schema)
    return f"{quote_name(text)}.*"


def account(current_user: str) -> str:
    """Return CURRENT_USER() quoted for a GRANT. The host follows the last `@`."""
    user, _, host = current_user.rpartition("@")
    return f"{quote_text(user)}@{quote_text(host)}"


def _parse(line: str) -> Grant | None:
    """Parse a line; None for roles, proxies, routines and anything else that is not about tables."""
    tokens = _TOKEN.findall(line)
    words = [token.upper() for token in tokens]
    if len(words) < 4 or words[0] not in ("GRANT", "REVOKE") or words[1][:1] in "`\"'" or "ON" not in words:
        return None
    on = words.index("ON")
    rest = tokens[on + 1 :]
    if words[on + 1] in _OTHER_OBJECTS and rest[1:2] != ["."]:
        return None
    if words[on + 1] == "TABLE" and rest[1:2] != ["."]:
        rest = rest[1:]
    if len(rest) < 5 or rest[1] != "." or rest[3].upper() not in ("TO", "FROM"):
        return None
    return Grant(_privileges(words[1:on]), _name(rest[0]), _name(rest[2]), _name(rest[4]), words[0] == "REVOKE")


def _privileges(words: Sequence[str]) -> frozenset[str]:
    """Return the privileges between GRANT and ON. A privilege that is granted only on some columns is left out."""
    found: set[str] = set()
    name: list[str] = []
    depth, columns = 0, False
    for word in (*words, ","):
        depth += (word == "(") - (word == ")")
        columns = columns or word == "("
        if word == "," and depth == 0:
            if not columns:
                found.add(_one_name(" ".join(name)))
            name, columns = [], False
        elif depth == 0 and word != ")":
            name.append(word)
    return frozenset(found)


def _one_name(privilege: str) -> str:
    return _ALIASES.get(privilege, privilege)


def _name(token: str) -> str:
    quote = token[:1]
    return token[1:-1].replace(quote * 2, quote) if quote in "`\"'" else token


def _like(pattern: str) -> re.Pattern[str]:
    parts = re.findall(r"\\.|.", pattern, re.DOTALL)
    forms = {"%": ".*", "_": "."}
    return re.compile("".join(forms.get(part) or re.escape(part[-1]) for part in parts), re.DOTALL)


def _exactness(pattern: str, literal: bool) -> int:
    """Return the length of a pattern up to its first wildcard. The server prefers the pattern with the longest one."""
    wildcard = None if literal else re.search(r"(?<!\\)[%_]", pattern)
    return wildcard.start() if wildcard else len(pattern) + 1000
