"""The fence of DDL, which no transaction can carry: only the owner of a source changes structures for it.

So it is with MySQL and MariaDB; with TiDB each statement bears its own fence (`target.tidb_ddl`).

| step | who |
|---|---|
| claim | raises the epoch (`target.receipts`), and only then has the source's lock (GET_LOCK) in its hands once |
| DDL | has the lock from before it looks at the structure until the statement is done; under it, it checks its epoch |

The lock is its session's: a process that is frozen with a statement in hand keeps it. So the next claim ends that
session, and what is sent late meets a dead connection. The lock coming free is the proof that the session is over; from
there on whoever gets it finds the new epoch. A session that works at a statement is waited for: it is the statement of
the open batch. One that can't be ended (a proxy, another account) is ended by the server after `IDLE_SECONDS`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from typing import Any

import MySQLdb

from unshard.log import logger
from unshard.mysql.connection import rows
from unshard.mysql.failures import ends_connection
from unshard.mysql.tidb import is_tidb
from unshard.retry import given_up
from unshard.target.meta import MetaTables
from unshard.target.receipts import hold
from unshard.target.tidb_ddl import TidbDdl

IDLE_SECONDS = 30
"""How long a session with the lock may be silent between two statements, which takes it milliseconds."""

_LOOK_SECONDS = 1
_NO_LOCKS = frozenset({1235, 1305})
"""What servers say that have no GET_LOCK: TiDB before 6.1. A strict PXC names it in an error without a number."""
_KILLED_QUERY = 1317


@contextmanager
def fenced(
    connection: Any, meta: MetaTables, source: str, epoch: int, tell: Callable[[str], None] = lambda why: None
) -> Iterator[None]:
    """Be the only one who changes structures for the source, on a connection without an open transaction.

    Waits for a statement that an earlier process, or this one on a lost connection, has left with the server; `tell` is
    called with what it waits for, and with an empty text when it does no longer. Raises SyncError SYNC-001 where
    another process has claimed the source; MySQLdb.Error where the caller is told to give up.
    """
    if is_tidb(connection):  # a statement there bears its own fence (`target.tidb_ddl`)
        _check(connection, meta, source, epoch)
        yield
        return
    name = lock_name(meta, source)
    ((idle,),) = rows(connection, "SELECT @@session.wait_timeout")
    held = _take(connection, meta, source, epoch, name, tell)
    try:
        _check(connection, meta, source, epoch)
        yield
    finally:
        if held:
            with suppress(MySQLdb.Error):  # a lost connection has lost its lock too
                rows(connection, "SELECT RELEASE_LOCK(%s)", (name,))
                _idle(connection, int(idle))


def wait_for_earlier_ddl(
    connection: Any, meta: MetaTables, source: str, epoch: int, tell: Callable[[str], None] = lambda why: None
) -> None:
    """Return once no process that had the source before can change a structure; behind a claim. Raises as `fenced`."""
    if is_tidb(connection):
        TidbDdl(connection, meta, source, epoch, tell).wait_for_earlier()
        return
    with fenced(connection, meta, source, epoch, tell):
        pass


def lock_name(meta: MetaTables, source: str) -> str:
    """Of the whole server, in at most 64 characters, and none that folds."""
    whole = "\0".join((meta.schema, meta.task, source))
    return f"unshard-ddl-{sha256(whole.encode()).hexdigest()[:48]}"


def _take(connection: Any, meta: MetaTables, source: str, epoch: int, name: str, tell: Callable[[str], None]) -> bool:
    """Get the lock, whoever has it; False where the server has no such thing."""
    _idle(connection, IDLE_SECONDS)
    while True:
        try:
            ((got,),) = rows(connection, f"SELECT GET_LOCK(%s, {_LOOK_SECONDS})", (name,))
        except MySQLdb.Error as error:
            if error.args[0] not in _NO_LOCKS and "GET_LOCK" not in str(error):
                raise
            words = {"source": source, "error": str(error)}
            logger("sync").warning("DDL of a frozen process is not fenced: the target has no GET_LOCK", **words)
            return False
        if got == 1:
            tell("")
            return True
        _check(connection, meta, source, epoch)
        tell(_end_idle(connection, source, name))
        if given_up():
            raise MySQLdb.OperationalError(_KILLED_QUERY, "waiting for a statement of an earlier process")


def _end_idle(connection: Any, source: str, name: str) -> str:
    """End the session that has the lock where it works at nothing; a server that tells no id ends it in time.

    What is waited for.
    """
    try:
        ((holder,),) = rows(connection, "SELECT IS_USED_LOCK(%s)", (name,))
        found = rows(connection, "SELECT COMMAND FROM information_schema.PROCESSLIST WHERE ID = %s", (holder,))
        words = {"source": source, "connection": holder}
        if found and found[0][0] == "Sleep":
            logger("sync").warning("ends the connection of an earlier process that stands before a DDL", **words)
            rows(connection, f"KILL {int(holder)}")
        elif holder is not None:
            logger("sync").warning("waits for a DDL of an earlier process", **words, sampled=True)
            return f"waits for a DDL of an earlier process, connection {holder} of the target"
    except MySQLdb.Error as error:
        if ends_connection(error):
            raise
        words = {"source": source, "error": str(error)}
        logger("sync").warning("the connection of an earlier process can't be ended", **words, sampled=True)
    return "waits for the connection of an earlier process to end"


def _check(connection: Any, meta: MetaTables, source: str, epoch: int) -> None:
    with connection.cursor() as cursor:
        cursor.execute("BEGIN")
        hold(cursor, meta, source, epoch)
        cursor.execute("COMMIT")


def _idle(connection: Any, seconds: int) -> None:
    rows(connection, f"SET SESSION wait_timeout = {seconds}")
