"""DDL on a TiDB target: each statement runs once, although a job of TiDB outlives its session and its server.

TiDB puts a statement into a queue of jobs and keeps a history of them, with their texts
(`information_schema.DDL_JOBS`). So a statement of ours begins with a comment that names the source (`mark`) and the
step of its intent (a random word, stored with the intent before it is run).

| question | answer |
|---|---|
| did an earlier attempt run the step? | the state of the job with its word |
| may this process still run DDL for the source? | a query in the same packet that fails where the epoch has risen |
| can an earlier process still run one? | no session has a statement with the mark in hand, no such job is under way |

A packet is whole at the server before its first statement runs, so a process that is frozen, however long, holds
nothing back between the query and the statement. GET_LOCK and KILL are no part of it: TiDB gives up a lock that is
held for an hour, and KILL may cancel the job of a session or leave it running.
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
from unshard.mysql.connection import rows
from unshard.mysql.tidb import of_all_servers
from unshard.retry import given_up
from unshard.target.meta import MetaTables
from unshard.target.receipts import FENCED_OUT

_LOOK_SECONDS = 0.5
_NEWEST_JOBS = 1000
"""Jobs that are under way stand before all others in the list, which is the newest first."""

_OVER = frozenset({"synced", "done", "cancelled", "rollback done"})
_DONE = frozenset({"synced", "done"})
_INVALID_JSON = 3140
_CANCELLED = 8214
_KILLED_QUERY = 1317


@dataclass(frozen=True, slots=True)
class Job:
    """A DDL job; `rows` counts those that it has filled in, for an index or a new type. `kind`: TiDB's name of what it
    does; `table_id` is that of `information_schema`, 0 for a job on a schema."""

    number: int
    state: str
    rows: int
    kind: str = ""
    table_id: int = 0

    @property
    def is_over(self) -> bool:
        return self.state in _OVER

    @property
    def is_done(self) -> bool:
        """Whether its statement has taken effect."""
        return self.state in _DONE


@dataclass(frozen=True, slots=True)
class TidbDdl:
    """The DDL of one source's owner, on a connection without an open transaction."""

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
        """Whether an earlier attempt's statement has taken effect; waits while it is under way.

        Raises MySQLdb.Error, also where the caller is told to give up.
        """
        while (waits := self._in_hand(word)) or (waits := self._under_way(_jobs(self.connection, word))):
            self._wait(waits)
        self.tell("")
        return any(job.is_done for job in _jobs(self.connection, word))

    def wait_for_earlier(self) -> None:
        """Return once no process that has lost the source can change a structure any more, by what it has sent.

        Behind a claim, which has raised the epoch. Raises MySQLdb.Error, also where the caller is told to give up.
        """
        mark = source_mark(self.meta, self.source)
        while (waits := self._in_hand(mark)) or (
            waits := self._under_way(_jobs(self.connection, mark, newest=_NEWEST_JOBS))
        ):
            self._wait(waits)
        self.tell("")

    def _guard(self) -> str:
        """A query that fails where the source has another epoch: its text is no JSON then."""
        name = self.source.replace("\\", "\\\\").replace("'", "''")
        return (
            f"SELECT CAST(IF(COUNT(*) = 1, '{{}}', 'lost') AS JSON) FROM {self.meta.batch}"
            f" WHERE source = '{name}' AND epoch = {self.epoch}"
        )

    def _owns(self) -> bool:
        question = f"SELECT 1 FROM {self.meta.batch} WHERE source = %s AND epoch = %s"
        return bool(rows(self.connection, question, (self.source, self.epoch)))

    def _in_hand(self, text: str) -> str:
        """The session of any server of the cluster that has a statement with such a comment in hand."""
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
    """A word that stands for the source of a task among all that run DDL on the cluster."""
    whole = "\0".join((meta.schema, meta.task, source))
    return f"unshard-ddl-{sha256(whole.encode()).hexdigest()[:24]}"


def jobs_under_way(connection: Any, meta: MetaTables, source: str) -> list[Job]:
    """The jobs of the source that are not over. Changes nothing. Raises MySQLdb.Error."""
    found = _jobs(connection, source_mark(meta, source), newest=_NEWEST_JOBS)
    return [job for job in found if not job.is_over]


def _jobs(connection: Any, text: str, newest: int = 0) -> tuple[Job, ...]:
    """The jobs whose statement has such a comment, of the newest ones or of all, without the parts of jobs."""
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
