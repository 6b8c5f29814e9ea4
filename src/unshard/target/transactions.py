"""How a transaction that writes rows begins. On TiDB the first attempt at it is optimistic.

| transaction | its rows | another's change, a duplicate |
|---|---|---|
| optimistic | are not locked before COMMIT | make COMMIT fail (9007, 1062): nothing of it is written |
| pessimistic | are locked by each statement | are waited for, or told by the statement |

Locks cost TiDB a third of the time of a large INSERT, and one more round trip to its store for each statement. Rows of
ours are seldom written by anybody else meanwhile. Where an optimistic transaction fails, its work is done again at once
in a pessimistic one, whose answers count: what it meets is waited for, and an error names the statement. Other servers
lock always.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import MySQLdb

from unshard.errors import UnshardError
from unshard.mysql.failures import Failure, failure_of
from unshard.mysql.tidb import is_tidb
from unshard.target.retrying import TOO_LARGE

T = TypeVar("T")
BEGIN, _OPTIMISTIC = b"BEGIN", b"BEGIN OPTIMISTIC"
_NOT_FOR_LOCKS = frozenset(
    {Failure.UNREACHABLE, Failure.LOST, Failure.READ_ONLY, Failure.TOO_LARGE, Failure.SHORT_OF_MEMORY}
)
"""What a transaction with locks would meet as well, or what leaves the connection, and the answer, in doubt."""


def in_transaction(connection: Any, transaction: Callable[[bytes], T], *, may_be_optimistic: bool = True) -> T:
    """What `transaction` gives, called with the statement that begins it; it commits by itself.

    It must be one that may run twice: a receipt in it tells an attempt that has been committed. Raises what it raises.
    """
    if not may_be_optimistic or not is_tidb(connection):
        return transaction(BEGIN)
    try:
        return transaction(_OPTIMISTIC)
    except MySQLdb.Error as error:
        if failure_of(error) in _NOT_FOR_LOCKS:
            raise
    except UnshardError as error:
        if error.code == TOO_LARGE:
            raise
    connection.query(b"ROLLBACK")
    return transaction(BEGIN)
