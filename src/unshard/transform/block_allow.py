"""Which schemas and tables are migrated at all.

============  ====================================================================
a schema      a system schema never passes; ``do-dbs``, when set, has to match;
              otherwise ``ignore-dbs`` must not
a table       its schema has to pass; ``do-tables``, when set, takes it at a match;
              then ``ignore-tables`` drops it at a match; then a set ``do-tables``
              that didn't match drops it; what is left passes. Helper tables of online DDL
              never do
============  ====================================================================
"""

from __future__ import annotations

from collections.abc import Iterable

from unshard.config.rules import BlockAllowRule, TableEntry
from unshard.model.table import TableName
from unshard.mysql.structure import SYSTEM_SCHEMAS
from unshard.transform.online_tables import OnlineTables
from unshard.transform.pattern import Pattern

_Tables = tuple[tuple[Pattern, Pattern], ...]


class BlockAllowList:
    """The block-allow list of one source. Pure and picklable; callers keep answers, it doesn't."""

    __slots__ = ("_do_schemas", "_do_tables", "_ignore_schemas", "_ignore_tables", "_online")

    def __init__(
        self, rule: BlockAllowRule | None = None, case_sensitive: bool = False, online: OnlineTables | None = None
    ) -> None:
        """None lets everything but the system schemas pass."""
        rule = rule or BlockAllowRule()
        self._online = online or OnlineTables()
        self._do_schemas = tuple(_pattern(text, case_sensitive) for text in rule.do_dbs)
        self._ignore_schemas = tuple(_pattern(text, case_sensitive) for text in rule.ignore_dbs)
        self._do_tables = _tables(rule.do_tables, case_sensitive)
        self._ignore_tables = _tables(rule.ignore_tables, case_sensitive)

    def allows_schema(self, schema: str) -> bool:
        """Whether statements on that schema pass."""
        if schema.lower() in SYSTEM_SCHEMAS:
            return False
        if self._do_schemas:
            return any(pattern.matches(schema) for pattern in self._do_schemas)
        return not any(pattern.matches(schema) for pattern in self._ignore_schemas)

    def allows(self, name: TableName) -> bool:
        """Whether rows and statements of that table pass."""
        if not self.allows_schema(name.schema) or not self._online.is_real(name):
            return False
        if _match(self._do_tables, name):
            return True
        return not _match(self._ignore_tables, name) and not self._do_tables


def _pattern(text: str, case_sensitive: bool) -> Pattern:
    return Pattern.compile(text, case_sensitive=case_sensitive, star_anywhere=True)


def _tables(entries: Iterable[TableEntry], case_sensitive: bool) -> _Tables:
    return tuple(
        (_pattern(entry.db_name, case_sensitive), _pattern(entry.tbl_name, case_sensitive)) for entry in entries
    )


def _match(tables: _Tables, name: TableName) -> bool:
    return any(schema.matches(name.schema) and table.matches(name.table) for schema, table in tables)
