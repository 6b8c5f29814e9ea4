"""Positions of snapshots while other sessions read the server's status: each snapshot holds what lies before its own.

MariaDB keeps what a SHOW STATUS is about to return in memory of all sessions, so one may return another one's position.
"""

from __future__ import annotations

import bisect
import threading
from collections.abc import Callable

import MySQLdb
import pytest

from support.scripted_connection import Rows, ScriptedConnection, first_match, located, logged
from unshard.errors import DumpError, SourceError
from unshard.model.position import Position
from unshard.source.exact_positions import ExactPositions
from unshard.source.snapshot import ask, open_reader, snapshots_apart_from_xa
from unshard.testing.mariadb_server import MariadbServer

WRITERS, DUMPERS, MONITORS, SNAPSHOTS = 3, 3, 3, 600


def scripted(*offsets: int, lock: int | None = 1) -> ScriptedConnection:
    """Its server tells these offsets of its snapshot, one after the other, the last one for ever; no binlog below 0.

    `lock` is what it answers to GET_LOCK, None for an error.
    """
    left = [0, *offsets]  # the first is read before there is a snapshot

    def status() -> Rows:
        offset = left.pop(0) if len(left) > 1 else left[0]
        return located(0, "b.000001" if offset >= 0 else "", offset)

    def get_lock() -> Rows:
        if lock is None:
            raise MySQLdb.NotSupportedError(1235, "GET_LOCK in cluster (WSREP_ON=ON)")
        return [(lock,)]

    answers: dict[str, Callable[[], Rows]] = {
        "SHOW GLOBAL": status,
        "SHOW MASTER": lambda: [("b.000001", "40", "", "")],
        "SHOW BINLOG": lambda: logged(10, 25, 40),
        "SELECT @@glo": lambda: [("0-1-7",)],
        "SELECT GET_LOCK": get_lock,
    }
    return ScriptedConnection(lambda statement: first_match(statement, answers))


@pytest.mark.parametrize("offsets", [(40,), (90, 40), (40, 40, 90, 40), (40, 90, 90, 40), (30, 40, 90, 40, 40, 30, 40)])
def test_what_another_session_put_there_is_not_believed(offsets: tuple[int, ...]) -> None:
    server = scripted(*offsets)
    assert snapshots_apart_from_xa((server,), server)[0].position == Position("b.000001", 40)


def test_snapshots_of_all_tasks_take_turns() -> None:
    server = scripted(40)
    snapshots_apart_from_xa((server,), server)
    inside = [statement.split()[0:2] for statement in server.statements if "_LOCK" in statement or "START" in statement]
    assert [words[-1].partition("(")[0] for words in inside] == ["GET_LOCK", "TRANSACTION", "RELEASE_LOCK"]


@pytest.mark.parametrize("lock", [0, None])
def test_who_gets_no_turn_reads_more_often(lock: int | None) -> None:
    """Another process holds the lock for too long, or the server has none."""
    server = scripted(90, 90, 90, 90, 90, 40, lock=lock)
    assert snapshots_apart_from_xa((server,), server)[0].position == Position("b.000001", 40)
    assert not any("RELEASE_LOCK" in statement for statement in server.statements)


def test_a_position_that_is_another_one_each_time_is_refused() -> None:
    server = scripted(*range(2000))
    with pytest.raises(DumpError, match="DUMP-013") as raised:
        snapshots_apart_from_xa((server,), server)
    assert "--consistency flush" in raised.value.hint
    assert "RELEASE_LOCK" in server.statements[-1]


def test_a_source_without_a_binlog_is_refused() -> None:
    server = scripted(-1)
    with pytest.raises(SourceError, match="SOURCE-020"):
        snapshots_apart_from_xa((server,), server)


class Storm:
    """Threads that write rows, take snapshots and read the status, until there are enough snapshots."""

    def __init__(self, server: MariadbServer, table: str) -> None:
        self.server, self.table = server, table
        self.ended = threading.Event()
        self.taken: list[tuple[Position, int]] = []
        self.failures: list[Exception] = []

    def write(self, number: int) -> None:
        connection = self.server.connection()
        with connection.cursor() as cursor:
            while not self.ended.is_set():
                cursor.execute(f"UPDATE {self.table} SET n = n + 1 WHERE id = %s", (number,))
        connection.close()

    def dump(self, _: int) -> None:
        snapshot, plain = (open_reader(self.server.endpoint, text=text) for text in (False, True))
        exact = ExactPositions()
        while not self.ended.is_set():
            position = snapshots_apart_from_xa((snapshot,), plain, exact)[0].position
            ((total,),) = ask(snapshot, f"SELECT SUM(n) FROM {self.table}")
            ask(snapshot, "ROLLBACK")
            self.taken.append((position, int(total)))
            if len(self.taken) >= SNAPSHOTS:
                self.ended.set()
        snapshot.close()
        plain.close()

    def monitor(self, _: int) -> None:
        connection = self.server.connection()
        while not self.ended.is_set():
            ask(connection, "SHOW GLOBAL STATUS LIKE 'Uptime'")
        connection.close()

    def run(self) -> None:
        works = ((self.write, WRITERS), (self.dump, DUMPERS), (self.monitor, MONITORS))
        threads = [threading.Thread(target=self._kept, args=(work, n)) for work, count in works for n in range(count)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        if self.failures:
            raise self.failures[0]

    def _kept(self, work: Callable[[int], None], number: int) -> None:
        try:
            work(number)
        except Exception as failure:  # noqa: BLE001 - raised by `run`
            self.failures.append(failure)
            self.ended.set()


@pytest.mark.server
def test_snapshots_hold_what_lies_before_their_positions_while_others_read_the_status(
    source_server: MariadbServer, schema: str
) -> None:
    table = f"{schema}.t"
    source_server.run(
        f"CREATE DATABASE {schema}",
        f"CREATE TABLE {table} (id INT PRIMARY KEY, n INT NOT NULL)",
        f"INSERT INTO {table} VALUES {', '.join(f'({number}, 0)' for number in range(WRITERS))}",
        "FLUSH BINARY LOGS",
    )
    file = source_server.binlog_files()[-1].name
    storm = Storm(source_server, table)
    storm.run()
    events = source_server.query(f"SHOW BINLOG EVENTS IN '{file}'")
    commits = [int(end) for _, _, kind, _, end, _ in events if kind == "Xid"]
    told = [(total, bisect.bisect_right(commits, position.offset)) for position, total in storm.taken]
    assert [pair for pair in told if pair[0] != pair[1]] == [], "(in the snapshot, in the log before its position)"
