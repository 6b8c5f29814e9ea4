"""Snapshots while a commit is in the binlog and not visible yet: the location has no row before it that they lack.

A commit that waits for a replica (semi-synchronous replication, AFTER_SYNC) makes that moment as long as one likes.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from support.dump_units import dump_of, values_of
from support.scripted_connection import Rows, ScriptedConnection, first_match, located, logged
from support.waiting import wait_until
from unshard.dump.metadata import read_dump
from unshard.errors import DumpError
from unshard.model.position import Location, Position
from unshard.source import exact_positions
from unshard.source import snapshot as snapshot_module
from unshard.source.exact_positions import ExactPositions
from unshard.source.snapshot import ask, open_reader, snapshots_apart_from_xa
from unshard.testing.mariadb_server import MariadbServer

MOST = 4096
WAITING = "SHOW GLOBAL STATUS LIKE 'rpl_semi_sync_master_wait_sessions'"


@pytest.fixture
def server() -> Iterator[MariadbServer]:
    with MariadbServer({"max_binlog_size": str(MOST)}) as found:
        found.run("CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY, v VARCHAR(3000))")
        yield found


@contextmanager
def held_commit(server: MariadbServer, row: int, size: int = 600) -> Iterator[None]:
    """Insert a row whose commit is in the log and waits for a replica until the end."""
    server.run(
        "SET GLOBAL rpl_semi_sync_master_timeout = 3600000",
        "SET GLOBAL rpl_semi_sync_master_wait_no_slave = ON",
        "SET GLOBAL rpl_semi_sync_master_wait_point = 'AFTER_SYNC'",
        "SET GLOBAL rpl_semi_sync_master_enabled = ON",
    )
    commit = threading.Thread(target=lambda: server.run(f"INSERT INTO d.t VALUES ({row}, REPEAT('x', {size}))"))
    commit.start()
    try:
        wait_until(lambda: server.query(WAITING)[0][1] == "1", "the commit waits")
        yield
    finally:
        server.run("SET GLOBAL rpl_semi_sync_master_enabled = OFF")
        commit.join()


def end_of(server: MariadbServer) -> Position:
    ((file, offset, *_),) = server.query("SHOW MASTER STATUS")
    return Position(file, int(offset))


def reported(server: MariadbServer) -> Position:
    """What the server reports as the position of the last commit. Unlike `end_of` it waits for nobody."""
    found = dict(server.query("SHOW GLOBAL STATUS LIKE 'binlog_snapshot%'"))
    return Position(found["Binlog_snapshot_file"], int(found["Binlog_snapshot_position"]))


def fill(server: MariadbServer) -> int:
    """Insert rows until the next large one begins a new file; return how many there are."""
    number = 0
    while MOST - end_of(server).offset > 500:
        number += 1
        server.run(f"INSERT INTO d.t VALUES ({number}, '')")
    return number


def rows_before(server: MariadbServer, place: Position) -> int:
    """The number of transactions of rows that lie before the place, over all files."""
    files = [Position(file) for file, *_ in server.query("SHOW BINARY LOGS")]
    events = [
        Position(place.file, int(end))
        for place in files
        for _, _, kind, _, end, _ in server.query(f"SHOW BINLOG EVENTS IN '{place.file}'")
        if kind == "Xid"
    ]
    return sum(end <= place for end in events)


def snapshot(
    server: MariadbServer, patience: float = 0.5, exact: ExactPositions | None = None, readers: int = 1
) -> tuple[Location, list[int]]:
    """The location of snapshots, and how many rows each has."""
    found = [open_reader(server.endpoint, text=False) for _ in range(readers)]
    plain = open_reader(server.endpoint, text=True)
    try:
        location, _ = snapshots_apart_from_xa(found, plain, exact, patience=patience, grace=0.02)
        return location, [int(ask(one, "SELECT COUNT(*) FROM d.t")[0][0]) for one in found]
    finally:
        for one in (*found, plain):
            one.close()


@pytest.mark.server
def test_statements_in_other_character_sets_lie_before_the_position(server: MariadbServer) -> None:
    """The server shows their bytes as they are."""
    connection = server.connection()
    with connection.cursor() as cursor:
        for number in range(4):
            cursor.execute(b"INSERT INTO d.t VALUES (%d, _latin1'\xe9\x97')" % number)
        cursor.execute(b"SET NAMES latin1")
        cursor.execute(b"CREATE TABLE d.u (a INT COMMENT '\xe9\x97')")
    connection.close()
    location, found = snapshot(server)
    assert (location.position, found) == (end_of(server), [4])


@pytest.mark.server
def test_a_commit_that_began_a_new_file_is_awaited(server: MariadbServer) -> None:
    """Its events lie before the head of the new file, and the snapshot reports that head."""
    fill(server)
    file = end_of(server).file
    with held_commit(server, 1000):
        assert end_of(server).file > file
        with pytest.raises(DumpError, match="DUMP-015"):
            snapshot(server)
    location, counts = snapshot(server, patience=60, readers=2)
    assert counts == [rows_before(server, location.position)] * 2
    assert location.gtid == server.query("SELECT @@global.gtid_binlog_pos")[0][0]


@pytest.mark.server
def test_what_is_committed_before_the_waiting_one_is_copied(server: MariadbServer) -> None:
    """In the middle of a file the position is that of the last commit that is visible."""
    for number in range(5):
        server.run(f"INSERT INTO d.t VALUES ({number}, '')")
    with held_commit(server, 1000):
        location, counts = snapshot(server)
        assert counts == [rows_before(server, location.position)] == [5]


@pytest.mark.server
@pytest.mark.parametrize("consistency", ["auto", "none"])
def test_a_copy_has_what_lies_before_its_begin(
    server: MariadbServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, consistency: str
) -> None:
    """What lies before it is not followed, so a snapshot that lacks a commit which waits then is of no use."""
    server.run(*(f"INSERT INTO d.t VALUES ({number}, '')" for number in range(5)))
    with held_commit(server, 1000):

        def go_on() -> None:
            server.run("SET GLOBAL rpl_semi_sync_master_enabled = OFF")
            wait_until(lambda: server.query("SELECT COUNT(*) FROM d.t")[0][0] == 6, "the row is visible")

        started: list[Any] = []
        begin_snapshot = snapshot_module.start_snapshot

        def start(connection: Any) -> None:
            started.append(connection)
            if len(started) > 1:
                go_on()
            begin_snapshot(connection)

        monkeypatch.setattr(snapshot_module, "start_snapshot", start)
        monkeypatch.setattr(exact_positions, "sleep", lambda _: go_on())
        result = dump_of(server, tmp_path, "d", consistency=consistency).run()
    found = read_dump(tmp_path / "dump")
    (name,) = result.tables
    assert result.begin.position <= result.tables[name].position
    ids = values_of(tmp_path / "dump", found.records[name])
    assert len(ids) == rows_before(server, result.tables[name].position) == 6


@pytest.mark.server
def test_an_offset_of_the_file_before_is_not_believed(server: MariadbServer) -> None:
    """A new file begins while a commit waits: its offset in the old file is reported beside the new file's name."""
    fill(server)
    file = end_of(server).file
    with held_commit(server, 1000, size=1):
        flushes = threading.Thread(target=lambda: server.run("FLUSH LOCAL BINARY LOGS"))
        flushes.start()
        wait_until(lambda: reported(server).file > file, "a new file")
    flushes.join()
    end = end_of(server)
    assert reported(server).offset > end.offset
    location, counts = snapshot(server, patience=60)
    assert (location.position, counts) == (end, [rows_before(server, end)])


@pytest.mark.server
def test_a_source_that_nobody_writes_to_is_copied_at_the_head_of_a_file(server: MariadbServer) -> None:
    server.run("INSERT INTO d.t VALUES (1, '')", "FLUSH LOCAL BINARY LOGS")
    location, counts = snapshot(server, patience=60)
    assert (location.position.file, counts) == (end_of(server).file, [1])


def scripted(offset: int, events: Callable[[], Rows], end: int = 40) -> ScriptedConnection:
    answers: dict[str, Callable[[], Rows]] = {
        "SHOW GLOBAL": lambda: [*located(0, "b.000001", offset), ("Rpl_semi_sync_master_wait_sessions", "1")],
        "SHOW MASTER": lambda: [("b.000001", str(end), "", "")],
        "SHOW BINLOG": events,
        "SELECT @@glo": lambda: [("0-1-7",)],
        "SELECT GET_LOCK": lambda: [(1,)],
    }
    return ScriptedConnection(lambda statement: first_match(statement, answers))


CHECKPOINT = ("b.000001", 40, "Binlog_checkpoint", 1, 50, "b.000001")


@pytest.mark.parametrize(
    ("offset", "events"),
    [
        (40, []),
        (40, logged(25, 40)),  # the first two groups of a file may wait for one of the file before, and be of its size
        (50, [*logged(10, 25, 40), CHECKPOINT]),  # written while the third one waits
        (35, logged(10, 25, 40)),  # in the middle of an event
        (60, logged(10, 25, 40)),  # beyond the end
    ],
)
def test_while_a_commit_waits_other_positions_are_refused(offset: int, events: Rows) -> None:
    server = scripted(offset, lambda: events)
    with pytest.raises(DumpError, match="DUMP-015"):
        snapshots_apart_from_xa((server,), server, patience=0.02, grace=0)


def test_later_servers_show_no_end_of_the_events_in_a_transaction() -> None:
    later = [("b.000001", 40, "Gtid", 1, 45, "BEGIN GTID 0-1-2"), ("b.000001", 45, "Table_map", 1, 0, "")]
    server = scripted(40, lambda: [*logged(10, 25, 40), *later])
    assert snapshots_apart_from_xa((server,), server, patience=0.02)[0].position == Position("b.000001", 40)


def test_a_known_position_is_not_looked_for_again() -> None:
    server, exact = scripted(40, lambda: logged(10, 25, 40)), ExactPositions()
    for _ in range(3):
        assert snapshots_apart_from_xa((server,), server, exact)[0].position == Position("b.000001", 40)
    assert sum("BINLOG EVENTS" in statement for statement in server.statements) == 1


def test_behind_a_known_position_one_transaction_is_enough() -> None:
    exact, first = ExactPositions(), scripted(40, lambda: logged(10, 25, 40))
    snapshots_apart_from_xa((first,), first, exact)
    server = scripted(55, lambda: logged(55), end=55)
    assert snapshots_apart_from_xa((server,), server, exact)[0].position == Position("b.000001", 55)
    assert any("FROM 40" in statement for statement in server.statements)
