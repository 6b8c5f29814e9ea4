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

With TiDB each statement has its own fence (`TidbDdl`), and runs once, although a job of TiDB outlives its session and
its server. TiDB puts a statement into a queue of jobs and keeps a history of them, with their texts
(`information_schema.DDL_JOBS`). So each statement begins with a comment that names the source (`source_mark`) and the
step of its intent (a random word, stored with the intent before it is run).

| question | answer |
|---|---|
| did an earlier attempt run the step? | the state of the job with its word |
| may this process still run DDL for the source? | a query in the same packet that fails where the epoch has risen |
| can an earlier process still run one? | no session executes a statement with the mark, no such job is running |

The server has a whole packet before its first statement runs, so a process that freezes, however long, can't stop
between the query and the statement. GET_LOCK and KILL are not used: TiDB releases a lock after an hour, and
KILL may cancel the job of a session or leave it running.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import MySQLdb

from unshard.errors import DdlError, SyncError, Where
from unshard.log import logger
from unshard.mysql.connection import rows
from unshard.mysql.failures import ends_connection, lacks_user_locks
from unshard.mysql.tidb import is_tidb, of_all_servers
from unshard.retry import given_up
from unshard.target.meta import MetaTables
from unshard.target.receipts import FENCED_OUT, hold

IDLE_SECONDS = 30
"""How long a session with the lock may be idle between two statements; the program needs milliseconds for that."""

_TRY_SECONDS = 1
_LOOK_SECONDS = 0.5
_NEWEST_JOBS = 1000
"""How many jobs of the list are read; it begins with the running jobs, followed by all others, the newest first."""

_OVER = frozenset({"synced", "done", "cancelled", "rollback done"})
_DONE = frozenset({"synced", "done"})
_INVALID_JSON = 3140
_CANCELLED = 8214
_KILLED_QUERY = 1317


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
            raise MySQLdb.OperationalError(_KILLED_QUERY, "waiting for a statement of an earlier process")


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


@dataclass(frozen=True, slots=True)
class Job:
    """A DDL job.

    Args:
        number, state: the job's id and state, as TiDB shows them.
        rows: how many rows it has filled in, for an index or a new type.
        kind: TiDB's name of what it does.
        table_id: that of `information_schema`; 0 for a job on a schema.
    """

    number: int
    state: str
    rows: int
    kind: str = ""
    table_id: int = 0

    @property
    def is_over(self) -> bool:
        """True if the job has reached a final state, done or not."""
        return self.state in _OVER

    @property
    def is_done(self) -> bool:
        """True if its statement has taken effect."""
        return self.state in _DONE


@dataclass(frozen=True, slots=True)
class TidbDdl:
    """The DDL of one source's owner, on a connection without an open transaction.

    `tell` is called with what is waited for, and with "" when the wait is over.
    """

    connection: Any
    meta: MetaTables
    source: str
    epoch: int
    tell: Callable[[str], None] = lambda why: None

    def run(self, word: str, statement: str) -> None:
        """Run a statement, unless another process has claimed the source.

        Raises SyncError SYNC-001 where one has, DdlError DDL-039 where a human has cancelled the job, MySQLdb.Error.
        """
        mark = f"/* {source_mark(self.meta, self.source)} {word} */"
        with self.connection.cursor() as cursor:
            try:
                cursor.execute(f"{mark} {self._guard()}; {mark} {statement}")
                while cursor.nextset():
                    pass
            except MySQLdb.Error as error:
                if error.args[0] == _INVALID_JSON and not self._owns():
                    raise SyncError(FENCED_OUT, Where(source=self.source)) from error
                if error.args[0] == _CANCELLED:
                    cause = ": ".join(map(str, error.args))
                    raise DdlError("DDL-039", Where(source=self.source), cause, {"statement": statement}) from error
                raise

    def was_done(self, word: str) -> bool:
        """Return whether an earlier attempt's statement has taken effect; waits while its job is running.

        Raises MySQLdb.Error, also once the thread has to give up (`retry.given_up`).
        """
        while (waits := self._in_hand(word)) or (waits := self._under_way(_jobs(self.connection, word))):
            self._wait(waits)
        self.tell("")
        return any(job.is_done for job in _jobs(self.connection, word))

    def wait_for_earlier(self) -> None:
        """Return once no statement sent by an earlier owner of the source can still change a structure.

        Called after a claim, which has raised the epoch. Raises MySQLdb.Error, also once the thread has to give up
        (`retry.given_up`).
        """
        mark = source_mark(self.meta, self.source)
        while (waits := self._in_hand(mark)) or (
            waits := self._under_way(_jobs(self.connection, mark, newest=_NEWEST_JOBS))
        ):
            self._wait(waits)
        self.tell("")

    def _guard(self) -> str:
        """Return a query that fails where the source has another epoch: it then casts a text that is no JSON."""
        name = self.source.replace("\\", "\\\\").replace("'", "''")
        return (
            f"SELECT CAST(IF(COUNT(*) = 1, '{{}}', 'lost') AS JSON) FROM {self.meta.batch}"
            f" WHERE source = '{name}' AND epoch = {self.epoch}"
        )

    def _owns(self) -> bool:
        question = f"SELECT 1 FROM {self.meta.batch} WHERE source = %s AND epoch = %s"
        return bool(rows(self.connection, question, (self.source, self.epoch)))

    def _in_hand(self, text: str) -> str:
        """Return, in words, which session of any server of the cluster executes a statement with such a comment."""
        question = (
            f"SELECT ID FROM {of_all_servers(self.connection, 'PROCESSLIST')} WHERE ID <> CONNECTION_ID()"
            " AND INSTR(INFO, %s) BETWEEN 1 AND 8"
        )
        found = rows(self.connection, question, (text,))
        return f"waits for a DDL of an earlier process, connection {found[0][0]} of the target" if found else ""

    def _under_way(self, jobs: tuple[Job, ...]) -> str:
        for job in jobs:
            if not job.is_over:
                filled = f", {job.rows:,} rows" if job.rows else ""
                return f"waits for DDL job {job.number} of the target: {job.state}{filled}"
        return ""

    def _wait(self, why: str) -> None:
        logger("sync").warning("waits for a DDL of an earlier process", source=self.source, why=why, sampled=True)
        self.tell(why)
        if given_up():
            raise MySQLdb.OperationalError(_KILLED_QUERY, why)
        time.sleep(_LOOK_SECONDS)


def source_mark(meta: MetaTables, source: str) -> str:
    """Return a word that identifies the source of a task among all that run DDL on the cluster."""
    whole = "\0".join((meta.schema, meta.task, source))
    return f"unshard-ddl-{sha256(whole.encode()).hexdigest()[:24]}"


def jobs_under_way(connection: Any, meta: MetaTables, source: str) -> list[Job]:
    """Return the jobs of the source that are not over. Changes nothing. Raises MySQLdb.Error."""
    found = _jobs(connection, source_mark(meta, source), newest=_NEWEST_JOBS)
    return [job for job in found if not job.is_over]


def _jobs(connection: Any, text: str, newest: int = 0) -> tuple[Job, ...]:
    """Return the jobs whose statement has such a comment, of the newest ones or of all; parts of jobs are left out."""
    limit = f" LIMIT {newest}" if newest else ""
    where = "" if newest else " WHERE QUERY LIKE %s"
    found = rows(
        connection,
        f"SELECT JOB_ID, STATE, ROW_COUNT, JOB_TYPE, QUERY, TABLE_ID FROM information_schema.DDL_JOBS{where}{limit}",
        () if newest else (f"%{text}%",),
    )
    whole = [row for row in found if "subjob" not in str(row[3]) and text in str(row[4])]
    filled = {int(row[0]): max(int(other[2] or 0) for other in found if other[0] == row[0]) for row in whole}
    return tuple(
        Job(int(number), str(state), filled[int(number)], str(kind), int(table or 0))
        for number, state, _, kind, _, table in whole
    )
