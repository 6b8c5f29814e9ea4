"""Rows that several processes write as the first, each without knowing of the others."""

from __future__ import annotations

from typing import Any

import MySQLdb

_DUPLICATE = 1062
_ATTEMPTS = 5


def upsert(cursor: Any, statement: str, values: Any) -> None:
    """Run an INSERT … ON DUPLICATE KEY UPDATE in the caller's transaction, which must be a pessimistic one on TiDB.

    Where two transactions insert the same row at once, TiDB may tell one of them of a duplicate in place of updating
    the row. The statement is then undone and the transaction goes on. The row is there now: the statement is run again.
    Raises MySQLdb.Error.
    """
    for attempt in range(1, _ATTEMPTS + 1):
        try:
            cursor.execute(statement, values)
            return
        except MySQLdb.IntegrityError as error:
            if error.args[0] != _DUPLICATE or attempt == _ATTEMPTS:
                raise
