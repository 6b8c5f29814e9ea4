"""Collation ids, as the binlog and the wire protocol have them, and the charset that each belongs to."""

from __future__ import annotations

from typing import Any

from pymysql.charset import charset_by_id


def charset_of(collation: int) -> str:
    """The charset of a collation id, as `information_schema` calls it. Raises KeyError for an unknown id."""
    charset: Any = charset_by_id(collation)
    return str(charset.name)
