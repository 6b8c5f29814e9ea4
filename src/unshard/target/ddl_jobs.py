"""The DDL jobs of a TiDB, and the fence of each statement there.

Each statement has its own fence (`TidbDdl`), and runs once, although a job of TiDB outlives its session and its
server. TiDB puts a statement into a queue of jobs and keeps a history of them, with their texts
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
from collections.abc import Callable
from dataclasses import dataclass
from hashlib import sha256
from typing import Any

import MySQLdb

from unshard.errors import DdlError, SyncError, Where
from unshard.log import logger
from unshard.model.table import quote_text
from unshard.mysql.connection import rows
from unshard.mysql.tidb import of_all_servers
from unshard.retry import given_up
from unshard.target.meta import MetaTables
from unshard.target.receipts import FENCED_OUT

_LOOK_SECONDS = 0.5


_NEWEST_JOBS = 1000
"""How many jobs of the list are read; it begins with the running jobs, followed by all others, the newest first."""

_OVER = frozenset({"synced", "done", "cancelled", "rollback done"})
_DONE = frozenset({"synced", "done"})
_INVALID_JSON = 3140
_CANCELLED = 8214
KILLED_QUERY = 1317


@dataclass(frozen=True, slots=True)
class Job:
    """A DDL job of TiDB.

    Args:
        number, state: the job's id and state, as TiDB shows them.
        rows: how many rows the job has processed, for an index or a changed type.
        kind: the kind of job, in TiDB's words.
        table_id: the table's id as in `information_schema`; 0 for a job on a schema.
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
    """The executor of one source's DDL on TiDB, on a connection without an open transaction.

    `tell` is called with the reason of a wait, and with "" when the wait is over.
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
        return (
            f"SELECT CAST(IF(COUNT(*) = 1, '{{}}', 'lost') AS JSON) FROM {self.meta.batch}"
            f" WHERE source = {quote_text(self.source)} AND epoch = {self.epoch}"
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
            raise MySQLdb.OperationalError(KILLED_QUERY, why)
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
