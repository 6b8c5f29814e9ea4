"""CREATE statements of a dump under another name.

Of them only names are changed, and engines without transactions; all else stays as the server wrote it.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from unshard.model.shape import NO_TRANSACTIONS, WITHOUT
from unshard.model.table import TableName, quote_name
from unshard.mysql.structure import with_known_types

_NAME_TEXT = r"(?:`(?:[^`]|``)+`|[\w$]+)"
_CREATE = re.compile(
    rf"\s*CREATE\s+(?P<kind>DATABASE|SCHEMA|TABLE)\s+(?:/\*.*?\*/\s*)?(?:IF\s+NOT\s+EXISTS\s+)?"
    rf"(?:(?P<schema>{_NAME_TEXT})\s*\.\s*)?(?P<name>{_NAME_TEXT})",
    re.IGNORECASE,
)
_REFERENCES = re.compile(
    rf"(?P<head>^\s*CONSTRAINT\s+{_NAME_TEXT}\s+FOREIGN KEY\s+\([^)]*\)\s+REFERENCES\s+)"
    rf"(?:(?P<schema>{_NAME_TEXT})\s*\.\s*)?(?P<name>{_NAME_TEXT})",
    re.MULTILINE,
)
_OF_A_PARTITION = re.compile(rf"(?<= ENGINE = )(?:{NO_TRANSACTIONS})\b", re.IGNORECASE)
_NOT_OF_INNODB = re.compile(r" (?:ROW_FORMAT=(?:FIXED|PAGE)|TRANSACTIONAL=\d)\b")
_COUNTER = re.compile(r" AUTO_INCREMENT=\d+")


def created_name(sql: str) -> tuple[str | None, str]:
    """Return schema, if it is given, and name of a CREATE DATABASE or CREATE TABLE. Raises ValueError for others."""
    found = _CREATE.match(sql)
    if found is None:
        raise ValueError(f"no CREATE DATABASE or TABLE: {sql[:80]}")
    return _bare(found["schema"]) if found["schema"] else None, _bare(found["name"])


def create_database(sql: str, name: str) -> str:
    """Return the CREATE DATABASE for another name, with IF NOT EXISTS."""
    return f"CREATE DATABASE IF NOT EXISTS {quote_name(name)}{sql[created_end(sql) :]}"


def create_table(sql: str, source_schema: str, target: TableName, route: Callable[[TableName], TableName]) -> str:
    """Return the CREATE TABLE for another name, with IF NOT EXISTS; foreign keys follow their tables' routes.

    A table of an engine without transactions becomes one of InnoDB (`model.shape`). Names of constraints that the
    server made from the table's name are made from the new one (`ddl.own_names.own_names`).
    """
    sql = with_known_types(_with_transactions(sql))
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

    return f"CREATE TABLE IF NOT EXISTS {target.quoted}{_REFERENCES.sub(reference, sql[created_end(sql) :])}"


def without_counter(sql: str) -> str:
    """Return the CREATE TABLE without its AUTO_INCREMENT counter."""
    close = sql.rfind("\n)")
    return sql[:close] + _COUNTER.sub("", sql[close:], count=1) if close >= 0 else sql


def _with_transactions(sql: str) -> str:
    """Return SHOW CREATE TABLE's text with InnoDB in the place of an engine without transactions and of its options."""
    engine = WITHOUT.search(sql)
    if engine is None:
        return sql
    options, by, partitions = sql[engine.end() :].partition("PARTITION BY")
    options, comment, rest = options.partition(" COMMENT=")
    own = f"{_NOT_OF_INNODB.sub('', options)}{comment}{rest}"
    return f"{sql[: engine.start(1)]}InnoDB{own}{by}{_OF_A_PARTITION.sub('InnoDB', partitions)}"


def created_end(sql: str) -> int:
    """Return the end of the name in a CREATE DATABASE or CREATE TABLE. Raises ValueError for others."""
    found = _CREATE.match(sql)
    if found is None:
        raise ValueError(f"no CREATE DATABASE or TABLE: {sql[:80]}")
    return found.end()


def _bare(name: str) -> str:
    return name[1:-1].replace("``", "`") if name.startswith("`") else name
