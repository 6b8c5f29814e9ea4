"""CREATE statements under another name: only names are changed, the rest stays as the server wrote it."""

from __future__ import annotations

import re
from collections.abc import Callable

from unshard.model.table import TableName, quote_name

_NAME = r"(?:`(?:[^`]|``)+`|[\w$]+)"
_CREATE = re.compile(
    rf"\s*CREATE\s+(?P<kind>DATABASE|SCHEMA|TABLE)\s+(?:/\*.*?\*/\s*)?(?:IF\s+NOT\s+EXISTS\s+)?"
    rf"(?:(?P<schema>{_NAME})\s*\.\s*)?(?P<name>{_NAME})",
    re.IGNORECASE,
)
_REFERENCES = re.compile(
    rf"(?P<head>^\s*CONSTRAINT\s+{_NAME}\s+FOREIGN KEY\s+\([^)]*\)\s+REFERENCES\s+)"
    rf"(?:(?P<schema>{_NAME})\s*\.\s*)?(?P<name>{_NAME})",
    re.MULTILINE,
)
_COUNTER = re.compile(r" AUTO_INCREMENT=\d+")


def created_name(sql: str) -> tuple[str | None, str]:
    """Schema, where it is given, and name of what a CREATE DATABASE or TABLE creates. Raises ValueError for others."""
    found = _CREATE.match(sql)
    if found is None:
        raise ValueError(f"no CREATE DATABASE or TABLE: {sql[:80]}")
    return _bare(found["schema"]) if found["schema"] else None, _bare(found["name"])


def create_database(sql: str, name: str) -> str:
    """The CREATE DATABASE for another name, only where there is none of it."""
    return f"CREATE DATABASE IF NOT EXISTS {quote_name(name)}{sql[_end(sql) :]}"


def create_table(sql: str, source_schema: str, target: TableName, route: Callable[[TableName], TableName]) -> str:
    """The CREATE TABLE for another name, only where there is none of it; foreign keys follow their tables' routes.

    Names of constraints that the server has made from the table's go with it (`ddl.own_names`).
    """
    own = quote_name(created_name(sql)[1])[1:-1]
    sql = re.sub(
        rf"^(\s*CONSTRAINT `){re.escape(own)}(_(?:chk|ibfk)_[0-9]+`)",
        lambda found: found[1] + quote_name(target.table)[1:-1] + found[2],
        sql,
        flags=re.MULTILINE | re.IGNORECASE,
    )

    def reference(found: re.Match[str]) -> str:
        schema = _bare(found["schema"]) if found["schema"] else source_schema
        return found["head"] + route(TableName(schema, _bare(found["name"]))).quoted

    return f"CREATE TABLE IF NOT EXISTS {target.quoted}{_REFERENCES.sub(reference, sql[_end(sql) :])}"


def without_counter(sql: str) -> str:
    """The CREATE TABLE without its AUTO_INCREMENT counter."""
    close = sql.rfind("\n)")
    return sql[:close] + _COUNTER.sub("", sql[close:], count=1) if close >= 0 else sql


def _end(sql: str) -> int:
    found = _CREATE.match(sql)
    if found is None:
        raise ValueError(f"no CREATE DATABASE or TABLE: {sql[:80]}")
    return found.end()


def _bare(name: str) -> str:
    return name[1:-1].replace("``", "`") if name.startswith("`") else name
