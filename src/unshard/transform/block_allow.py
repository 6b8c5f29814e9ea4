"""The block-allow list: the schemas and tables that are migrated at all.

============  ====================================================================
a schema      a system schema never passes; ``do-dbs``, when set, has to match;
              otherwise ``ignore-dbs`` must not
a table       its schema has to pass; ``do-tables``, when set, takes it at a match;
              then ``ignore-tables`` drops it at a match; then a set ``do-tables``
              that didn't match drops it; any other table passes. Helper tables of
              online DDL never pass
============  ====================================================================
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from unshard.config.rules import BlockAllowRule, TableEntry
from unshard.model.table import TableName
from unshard.mysql.structure import SYSTEM_SCHEMAS
from unshard.transform.online_tables import OnlineTables
from unshard.transform.pattern import Pattern


@dataclass(frozen=True, slots=True)
class Passage:
    """The decision whether a name passes the list, and the rule that decides.

    `rule` is a list and the index in it (`do-dbs[0]`), the list alone where nothing in it matched, `system schema`,
    `online DDL`, or "" where no list applies; `pattern` is the pattern that matched there.
    """

    passes: bool
    rule: str = ""
    pattern: str = ""


_Schemas = tuple[tuple[Pattern, Passage], ...]
_Tables = tuple[tuple[Pattern, Pattern, Passage], ...]

_FREE = Passage(True)
_SYSTEM = Passage(False, "system schema")
HELPER = Passage(False, "online DDL")
_NOT_IN_SCHEMAS = Passage(False, "do-dbs")
_NOT_IN_TABLES = Passage(False, "do-tables")


class BlockAllowList:
    """The block-allow list of one source. Pure and picklable. It caches no results; callers may."""

    __slots__ = ("_do_schemas", "_do_tables", "_ignore_schemas", "_ignore_tables", "_online")

    def __init__(
        self, rule: BlockAllowRule | None = None, case_sensitive: bool = False, online: OnlineTables | None = None
    ) -> None:
        """Take the rule; without one everything but the system schemas passes."""
        rule = rule or BlockAllowRule()
        self._online = online or OnlineTables()
        self._do_schemas = _schemas(rule.do_dbs, case_sensitive, "do-dbs", passes=True)
        self._ignore_schemas = _schemas(rule.ignore_dbs, case_sensitive, "ignore-dbs", passes=False)
        self._do_tables = _tables(rule.do_tables, case_sensitive, "do-tables", passes=True)
        self._ignore_tables = _tables(rule.ignore_tables, case_sensitive, "ignore-tables", passes=False)

    def allows_schema(self, schema: str) -> bool:
        """Return whether statements on that schema pass."""
        return self.judge_schema(schema).passes

    def allows(self, name: TableName) -> bool:
        """Return whether rows and statements of that table pass."""
        return self.judge(name).passes

    def judge_schema(self, schema: str) -> Passage:
        """As `allows_schema`, with the rule that decides."""
        if schema.lower() in SYSTEM_SCHEMAS:
            return _SYSTEM
        lists = self._do_schemas or self._ignore_schemas
        found = next((passage for pattern, passage in lists if pattern.matches(schema)), None)
        return found or (_NOT_IN_SCHEMAS if self._do_schemas else _FREE)

    def judge(self, name: TableName) -> Passage:
        """As `allows`, with the rule that decides: one of the tables' lists where they apply, else of the schemas'."""
        schema = self.judge_schema(name.schema)
        if not schema.passes:
            return schema
        if not self._online.is_real(name):
            return HELPER
        found = _match(self._do_tables, name) or _match(self._ignore_tables, name)
        return found or (_NOT_IN_TABLES if self._do_tables else schema)


def _pattern(text: str, case_sensitive: bool) -> Pattern:
    return Pattern.compile(text, case_sensitive=case_sensitive, star_anywhere=True)


def _schemas(texts: Iterable[str], case_sensitive: bool, listed: str, *, passes: bool) -> _Schemas:
    return tuple(
        (_pattern(text, case_sensitive), Passage(passes, f"{listed}[{place}]", text))
        for place, text in enumerate(texts)
    )


def _tables(entries: Iterable[TableEntry], case_sensitive: bool, listed: str, *, passes: bool) -> _Tables:
    return tuple(
        (
            _pattern(entry.db_name, case_sensitive),
            _pattern(entry.tbl_name, case_sensitive),
            Passage(passes, f"{listed}[{place}]", f"{entry.db_name}.{entry.tbl_name}"),
        )
        for place, entry in enumerate(entries)
    )


def _match(tables: _Tables, name: TableName) -> Passage | None:
    found = (p for schema, table, p in tables if schema.matches(name.schema) and table.matches(name.table))
    return next(found, None)
