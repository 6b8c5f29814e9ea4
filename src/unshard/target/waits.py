"""The waits of the task's sessions in the target; the driver asks while a step takes long, for the status alone.

The receipts show which sessions are the task's. The row of a partition in work has its session in `writer`, written by
the very transaction that waits, and is read before that commits; a session that tries again has committed it there.
TiDB shows no row before its commit: there the task's sessions are those whose transaction has touched the receipts.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, NamedTuple

import MySQLdb

from unshard.mysql.connection import rows
from unshard.mysql.failures import ends_connection
from unshard.mysql.tidb import is_tidb, of_all_servers
from unshard.target.ddl_jobs import Job, jobs_under_way
from unshard.target.meta import MetaTables

LONG_SECONDS = 5
"""How long a statement has run when it may be waiting although no wait is seen, for want of a privilege."""

_SHOWN = 3
_RUNS = frozenset({"Query", "Bulk_execute"})
"""Commands in the processlist of a session that runs a statement. MariaDB has the latter for bulk statements."""

_STATEMENT_LENGTH = 80
_VALUES = re.compile(r"['\"]|\b(?:WHERE|VALUES?|SET|IDENTIFIED)\b", re.IGNORECASE)
_TRX = "information_schema.INNODB_TRX"
_INNODB = (
    "SELECT r.trx_mysql_thread_id, b.trx_mysql_thread_id"
    f" FROM {{waits}} w JOIN {_TRX} r ON r.trx_id = w.{{requesting}} JOIN {_TRX} b ON b.trx_id = w.{{blocking}}"
)
_BEFORE_8 = _INNODB.format(
    waits="information_schema.INNODB_LOCK_WAITS", requesting="requesting_trx_id", blocking="blocking_trx_id"
)
_SINCE_8 = _INNODB.format(
    waits="performance_schema.data_lock_waits",
    requesting="REQUESTING_ENGINE_TRANSACTION_ID",
    blocking="BLOCKING_ENGINE_TRANSACTION_ID",
)
_TIDB = (
    "SELECT r.SESSION_ID, b.SESSION_ID FROM information_schema.DATA_LOCK_WAITS w"
    " JOIN {transactions} r ON r.ID = w.TRX_ID JOIN {transactions} b ON b.ID = w.CURRENT_HOLDING_TRX_ID"
)
_METADATA = (
    "SELECT me.PROCESSLIST_ID, other.PROCESSLIST_ID FROM performance_schema.metadata_locks wanted"
    " JOIN performance_schema.threads me ON me.THREAD_ID = wanted.OWNER_THREAD_ID"
    " JOIN performance_schema.metadata_locks held USING (OBJECT_TYPE, OBJECT_SCHEMA, OBJECT_NAME)"
    " JOIN performance_schema.threads other ON other.THREAD_ID = held.OWNER_THREAD_ID"
    " WHERE wanted.LOCK_STATUS = 'PENDING' AND held.LOCK_STATUS = 'GRANTED'"
    " AND other.PROCESSLIST_ID <> me.PROCESSLIST_ID"
)


class _Receipt(NamedTuple):
    """The receipt of a partition of an open batch."""

    source: str
    part: int
    chunk: int
    step: int
    writer: int
    trouble: str


@dataclass(frozen=True, slots=True)
class ServerSession:
    """One line of the processlist.

    `seconds` is the time in the present state; for an idle session, the time since its last statement.
    """

    id: int
    account: str
    command: str
    seconds: int
    state: str
    statement: str


def standstill(connection: Any, meta: MetaTables, source: str, driver: int = 0) -> str:
    """Return the waits of the source's sessions in the target with remedies, and what is tried again; "" for nothing.

    `driver`: the id of the driver's own session, 0 for none. Changes nothing. Raises MySQLdb.Error.
    """
    receipts = _receipts(connection, meta)
    troubles = {one.writer: one.trouble for one in receipts if one.trouble and one.source == source}
    in_hand = {one.writer: one.source for one in _uncommitted(connection, meta, receipts)}
    own = {writer for writer, of in in_hand.items() if of == source} | troubles.keys() | {driver}
    jobs: list[str] = []
    if is_tidb(connection):
        own |= _with_receipts(connection, meta)
        jobs = [_job(connection, job, own) for job in jobs_under_way(connection, meta, source)]
    told = list(dict.fromkeys(troubles.values())) + jobs + list(_waits(connection, own - {0}, in_hand))
    more = len(told) - _SHOWN
    return "; ".join(told[:_SHOWN] + [f"and {more} more"] * (more > 0))


def _receipts(connection: Any, meta: MetaTables) -> list[_Receipt]:
    """Return the receipts of the open batches of all sources of the task."""
    asked = (
        f"SELECT p.source, p.part, p.chunk, p.step, p.writer, p.trouble FROM {meta.partition} p JOIN {meta.batch} b"
        " ON b.source = p.source AND b.epoch = p.epoch AND b.batch_id = p.batch_id AND b.state = 'open'"
    )
    return [_Receipt(*found) for found in rows(connection, asked)]


def _uncommitted(connection: Any, meta: MetaTables, committed: Iterable[_Receipt]) -> list[_Receipt]:
    """Return the receipts of transactions that are open now."""
    try:
        rows(connection, "SET TRANSACTION ISOLATION LEVEL READ UNCOMMITTED")
        found = _receipts(connection, meta)
    except MySQLdb.Error as error:
        if ends_connection(error):
            raise
        return []  # TiDB has no such level
    known = {one[:4] for one in committed}
    return [one for one in found if one[:4] not in known]


def _job(connection: Any, job: Job, own: Collection[int]) -> str:
    """Describe a DDL job on TiDB, and the transactions that it may wait for: those that have used its table.

    TiDB joins the same tables in `mysql.tidb_mdl_view`, which takes more privileges.
    """
    try:
        found = rows(
            connection,
            f"SELECT SESSION_ID FROM {of_all_servers(connection, 'TIDB_TRX')} WHERE FIND_IN_SET(%s, RELATED_TABLE_IDS)",
            (job.table_id,),
        )
    except MySQLdb.Error as error:
        if ends_connection(error):
            raise
        found = []
    sessions = _sessions(connection, {int(id) for (id,) in found} - set(own)) if found else {}
    head = f"DDL job {job.number} of the target ({job.kind}) is {job.state}"
    if not sessions:
        return f"{head}, {job.rows:,} rows done; ADMIN SHOW DDL JOBS tells more"
    listed = ", ".join(f"connection {one.id} ({_what(one)})" for one in list(sessions.values())[:_SHOWN])
    return f"{head}; it waits for transactions that have used its table: {listed}: have them commit, or `KILL` them"


def _with_receipts(connection: Any, meta: MetaTables) -> set[int]:
    """Return TiDB's sessions whose transaction has touched the task's receipts; none that the account may not see."""
    try:
        tables = rows(
            connection,
            "SELECT TIDB_TABLE_ID FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s",
            (meta.schema, f"{meta.task}_apply_partition"),
        )
        asked = f"SELECT SESSION_ID, RELATED_TABLE_IDS FROM {of_all_servers(connection, 'TIDB_TRX')}"
        found = rows(connection, asked)
    except MySQLdb.Error as error:
        if ends_connection(error):
            raise
        return set()
    receipts = {str(number) for (number,) in tables}
    return {int(session) for session, touched in found if receipts.intersection(str(touched).split(","))}


def _waits(connection: Any, own: set[int], in_hand: Mapping[int, str]) -> Iterator[str]:
    if not own:
        return
    holders, all_seen = _holders(connection, own)
    sessions = _sessions(connection, own | {holder for held in holders.values() for holder in held})
    by_holder: dict[int, list[int]] = {}
    for waiter, held in sorted(holders.items()):
        for holder in sorted(held - holders.keys() or held):
            by_holder.setdefault(holder, []).append(waiter)
    for holder, waiters in by_holder.items():
        yield _held(holder, waiters, sessions, in_hand.get(holder, ""))
    for waiter in sorted(own - holders.keys()):
        session = sessions.get(waiter)
        if session is not None and session.command in _RUNS and session.seconds >= LONG_SECONDS:
            if "metadata lock" in session.state:
                yield _in_use(session, _in_transactions(connection, own))
            elif not all_seen:
                yield _unseen(session)


def _holders(connection: Any, own: Collection[int]) -> tuple[dict[int, set[int]], bool]:
    """Return, by session of the task, the sessions that it waits for; and whether all waits for rows could be seen."""
    ((version,),) = rows(connection, "SELECT VERSION()")
    on_tidb = is_tidb(connection)
    is_mysql_8 = not on_tidb and not re.search("mariadb", version, re.IGNORECASE) and int(version.split(".")[0]) >= 8
    by_rows = _SINCE_8 if is_mysql_8 else _BEFORE_8
    if on_tidb:
        by_rows = _TIDB.format(transactions=of_all_servers(connection, "TIDB_TRX"))
    found: dict[int, set[int]] = {}
    refused = 0
    for asked in [by_rows, _METADATA] if is_mysql_8 else [by_rows]:
        try:
            answer = rows(connection, asked)
        except MySQLdb.Error as error:
            if ends_connection(error):
                raise
            refused += asked is by_rows
            continue
        for waiter, holder in answer:
            if waiter in own and holder is not None:
                found.setdefault(int(waiter), set()).add(int(holder))
    return found, not refused


def _sessions(connection: Any, ids: Iterable[int]) -> dict[int, ServerSession]:
    """Return those of the sessions that this account may see."""
    listed = ", ".join(str(int(one)) for one in ids) or "NULL"
    asked = (
        f"SELECT ID, USER, HOST, COMMAND, TIME, STATE, INFO FROM information_schema.PROCESSLIST WHERE ID IN ({listed})"
    )
    return {
        int(id): ServerSession(
            int(id), f"{user}@{host}", str(command), int(seconds or 0), str(state or ""), _shape(info)
        )
        for id, user, host, command, seconds, state, info in rows(connection, asked)
    }


def _shape(statement: Any) -> str:
    """Return the beginning of a statement without values: those of rows and passwords must not be shown here."""
    return " ".join(_VALUES.split(str(statement or ""), maxsplit=1)[0].split())[:_STATEMENT_LENGTH]


def _in_transactions(connection: Any, own: Collection[int]) -> list[ServerSession]:
    """Return other sessions that are in a transaction; none where this account may not see them."""
    try:
        found = rows(connection, f"SELECT trx_mysql_thread_id FROM {_TRX}")
    except MySQLdb.Error as error:
        if ends_connection(error):
            raise
        return []
    others = {int(id) for (id,) in found} - set(own) - {0}
    return list(_sessions(connection, others).values()) if others else []


def _held(holder: int, waiters: list[int], sessions: dict[int, ServerSession], ours: str) -> str:
    """Describe one holder of locks and the sessions that wait for it."""
    listed = ", ".join(map(str, waiters))
    longest = max((sessions[one].seconds for one in waiters if one in sessions), default=0)
    one = len(waiters) == 1
    who_waits = (
        f"connection {listed} of the target, ours, waits" if one else f"our connections {listed} of the target wait"
    )
    head = f"{who_waits} for {longest} s for a lock that connection {holder} holds"
    who = sessions.get(holder)
    if ours:
        return f"{head}: it writes for {ours}, and this goes on behind it"
    if who is None:
        return f"{head}; whose it is needs the privilege PROCESS to be seen. `KILL {holder}` in the target ends it"
    return f"{head} ({_what(who)}): have it commit, or `KILL {holder}` in the target"


def _what(session: ServerSession) -> str:
    """Describe whose session it is and what it does."""
    if session.command == "Sleep":
        return f"{session.account}, silent for {session.seconds} s in an open transaction"
    return f"{session.account}, {session.command} for {session.seconds} s: {session.statement}"


def _in_use(session: ServerSession, others: list[ServerSession]) -> str:
    """Describe a statement that waits until nobody uses the table, where it can't be seen who does."""
    head = f"connection {session.id} of the target, ours, waits for {session.seconds} s for a metadata lock: "
    told = f"{head}{session.statement} goes on when no transaction has the table in use"
    listed = ", ".join(f"connection {one.id} ({_what(one)})" for one in others[:_SHOWN])
    return f"{told}; open now: {listed}; `KILL` ends one" if listed else f"{told}; SHOW PROCESSLIST there tells who"


def _unseen(session: ServerSession) -> str:
    return (
        f"connection {session.id} of the target, ours, has been at {session.statement} for {session.seconds} s."
        " Whether it waits for a lock, and whose, can't be seen: GRANT PROCESS, and in MySQL 8 SELECT ON"
        " performance_schema.*"
    )
