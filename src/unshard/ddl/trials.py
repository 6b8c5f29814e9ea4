"""Keeps the results of the latest DDL trials, so that no statement is tried twice on the same table structures.

A trial runs a statement on empty copies of its tables (`sandbox`), and shows the structure that the statement leaves.
That depends on the structures before it, the schema, the session and the statement's text. The tracker and the plan of
the target's change need the same trial, unless the target's table differs from the source's. A log that creates small
tables, one after the other, needs the same trial under other names. So the name of a table is ignored, unless the
statement or a structure also has it in another place, as in the name of a constraint.

The texts contain the name of the scratch schema, and with it the number of the connection. On a new connection, perhaps
to another server, all trials are run again.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Hashable
from dataclasses import dataclass, field, replace

from unshard.model.table import Table, TableName, quote_name

Sent = tuple[str, Hashable]
"""A statement as it is sent, and the session that it runs in."""

_KEPT = 64
_NAME = "\0"
"""Stands for the table's name in a text."""


@dataclass(slots=True)
class Trials:
    """The results of the latest trials of DDL for one source. Used by one thread."""

    _found: OrderedDict[Hashable, Table | str | None] = field(default_factory=OrderedDict)

    def table(self, sent: tuple[Sent, ...], copy: TableName) -> tuple[bool, Table | None]:
        """Return whether it is known how a copy looks after these statements, and how: None where it is not there."""
        for key in (_without_name(sent, copy), (sent, copy)):
            if key in self._found:
                found = self._found[key]
                assert not isinstance(found, str)
                self._found.move_to_end(key)
                return True, found if found is None or found.name == copy else _named(found, copy)
        return False, None

    def keep_table(self, sent: tuple[Sent, ...], copy: TableName, found: Table | None) -> None:
        """Keep how a copy looks after these statements."""
        key = _without_name(sent, copy)
        fits = found is None or _head(copy) + _NAME == _cut(found.create_sql, copy)
        self._keep(key if key is not None and fits else (sent, copy), found)

    def schema(self, sent: tuple[Sent, ...], stand_in: str) -> tuple[bool, str | None]:
        """Return whether SHOW CREATE DATABASE of a stand-in after these statements is known, and its text."""
        found = self._found.get((sent, stand_in))
        assert not isinstance(found, Table)
        return (sent, stand_in) in self._found, found

    def keep_schema(self, sent: tuple[Sent, ...], stand_in: str, found: str | None) -> None:
        """Keep SHOW CREATE DATABASE of a stand-in after these statements."""
        self._keep((sent, stand_in), found)

    def _keep(self, key: Hashable, found: Table | str | None) -> None:
        self._found[key] = found
        while len(self._found) > _KEPT:
            self._found.popitem(last=False)


def _without_name(sent: tuple[Sent, ...], copy: TableName) -> Hashable | None:
    """Return the statements without the copy's name; None where they have the name in other places too."""
    texts = [text.replace(copy.quoted, _NAME) for text, _ in sent]
    schema = quote_name(copy.schema)
    if any(copy.table.lower() in text.replace(schema, "").lower() for text in texts):
        return None
    return tuple((text, session) for text, (_, session) in zip(texts, sent, strict=True))


def _head(copy: TableName) -> str:
    return f"CREATE TABLE {quote_name(copy.table)} "


def _cut(create_sql: str, copy: TableName) -> str:
    """Return the head of a SHOW CREATE TABLE, and `_NAME` where the rest does not have the table's name."""
    head, rest = create_sql[: len(_head(copy))], create_sql[len(_head(copy)) :]
    return head + ("" if copy.table.lower() in rest.lower() else _NAME)


def _named(found: Table, copy: TableName) -> Table:
    rest = found.create_sql[len(_head(found.name)) :]
    return replace(found, name=copy, create_sql=_head(copy) + rest)
