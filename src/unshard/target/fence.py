"""The fence of DDL, which no transaction can protect: only the owner of a source changes structures for it.

MySQL and MariaDB have a fence for each source (`fenced`):

| step | who |
|---|---|
| claim | raises the epoch (`target.receipts`), and then takes the source's lock (GET_LOCK) once |
| DDL | has the lock from before it looks at the structure until the statement is done; under it, it checks its epoch |

The lock belongs to its session: a process that freezes during a statement keeps it. So the next claim ends that
session, and a statement that the process sends later meets a dead connection. When the lock is free, the session has
ended; whoever gets the lock from then on finds the new epoch. A session that is executing a statement is waited for: it
is the statement of the open batch. A session that can't be ended (a proxy, another account) is ended by the server
after `IDLE_SECONDS`.

With TiDB each statement has its own fence (`ddl_jobs.py`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from hashlib import sha256
from typing import Any

import MySQLdb

from unshard.log import logger
from unshard.mysql.connection import rows
from unshard.mysql.failures import ends_connection, lacks_user_locks
from unshard.mysql.tidb import is_tidb
from unshard.retry import given_up
from unshard.target.ddl_jobs import KILLED_QUERY, TidbDdl
from unshard.target.meta import MetaTables
from unshard.target.receipts import hold

IDLE_SECONDS = 30
"""How long a session with the lock may be idle between two statements; the program needs milliseconds for that."""

_TRY_SECONDS = 1


@contextmanager
def fenced(
    connection: Any, meta: MetaTables, source: str, epoch: int, tell: Callable[[str], None] = lambda why: None
) -> Iterator[None]:
    """Ensure that nobody else changes structures for the source; on a connection without an open transaction.

    Waits for a statement that an earlier process, or this one on a lost connection, has left with the server. `tell` is
    called with what it waits for, and with an empty text when the wait is over. Raises SyncError SYNC-001 where another
    process has claimed the source; MySQLdb.Error once the thread has to give up (`retry.given_up`).
    """
    if is_tidb(connection):  # a statement there has its own fence (`TidbDdl`)
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
    """Return once no earlier owner of the source can change a structure; called after a claim. Raises as `fenced`."""
    if is_tidb(connection):
        TidbDdl(connection, meta, source, epoch, tell).wait_for_earlier()
        return
    with fenced(connection, meta, source, epoch, tell):
        pass


def lock_name(meta: MetaTables, source: str) -> str:
    """Return a lock name: unique on the server, at most 64 characters, the same in every collation."""
    whole = "\0".join((meta.schema, meta.task, source))
    return f"unshard-ddl-{sha256(whole.encode()).hexdigest()[:48]}"


def _take(connection: Any, meta: MetaTables, source: str, epoch: int, name: str, tell: Callable[[str], None]) -> bool:
    """Get the lock, whoever has it; False where the server has no GET_LOCK."""
    _idle(connection, IDLE_SECONDS)
    while True:
        try:
            ((got,),) = rows(connection, f"SELECT GET_LOCK(%s, {_TRY_SECONDS})", (name,))
        except MySQLdb.Error as error:
            if not lacks_user_locks(error):
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
            raise MySQLdb.OperationalError(KILLED_QUERY, "waiting for a statement of an earlier process")


def _end_idle(connection: Any, source: str, name: str) -> str:
    """End the session that has the lock if it is idle; return what is waited for.

    A session whose id the server doesn't show is ended by the server after `IDLE_SECONDS`.
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
