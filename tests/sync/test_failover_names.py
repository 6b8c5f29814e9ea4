"""Names of one server's binlog become places in another's, by GTID: what is found, and what is refused."""

from __future__ import annotations

from threading import Event

import pytest

from support.own_files import OwnFiles
from unshard.binlog.xa import xid_text
from unshard.errors import RelayError, SyncError
from unshard.model.position import Location, Position
from unshard.model.table import Table, TableName
from unshard.sync.source_log.failover import RecordedNames, translate
from unshard.sync.source_log.seek import gtids_at
from unshard.target.checkpoint import Checkpoint, ExitPoint, TableCheckpoint
from unshard.target.prepared_xa import PreparedXa
from unshard.testing.mariadb_server import MariadbServer

pytestmark = pytest.mark.server

OLD = "old-bin.000009"


Marks = dict[str, Location]


@pytest.fixture
def marks(source_server: MariadbServer, schema: str) -> Marks:
    """Places of the server: behind an insert, behind a prepare, behind one more insert in the next file."""
    server = source_server
    found: Marks = {}

    def mark(name: str) -> None:
        ((file, offset, *_),) = server.query("SHOW MASTER STATUS")
        ((gtid,),) = server.query("SELECT BINLOG_GTID_POS(%s, %s)", (file, offset))
        found[name] = Location(Position(file, int(offset)), gtid)

    table = f"{schema}.t"
    server.run(f"CREATE DATABASE {schema}", f"CREATE TABLE {table} (id INT PRIMARY KEY)", "FLUSH BINARY LOGS")
    server.run(f"INSERT INTO {table} VALUES (1)")
    mark("insert")
    server.run(
        f"XA START '{schema}'", f"INSERT INTO {table} VALUES (2)", f"XA END '{schema}'", f"XA PREPARE '{schema}'"
    )
    mark("prepare")
    server.run("FLUSH BINARY LOGS", f"INSERT INTO {table} VALUES (3)")
    mark("later")
    server.run(f"XA ROLLBACK '{schema}'", f"INSERT INTO {table} VALUES (4)")
    return found


@pytest.fixture
def relay(source_server: MariadbServer, marks: Marks) -> OwnFiles:
    return OwnFiles(source_server, marks["insert"].position.file)


def elsewhere(location: Location, offset: int) -> Location:
    return Location(Position(OLD, offset), location.gtid)


def prepared(xid: str) -> dict[str, PreparedXa]:
    """What is on record of a transaction that is prepared there."""
    text = xid_text(xid.encode(), b"", 1)
    return {text: PreparedXa(text, Location(Position(OLD, 100), "0-1-1"), 500)}


def test_all_names_find_their_places(relay: OwnFiles, schema: str, marks: Marks) -> None:
    one, other = (Table(TableName(schema, name), ()) for name in "tu")
    tables = {
        one.name: TableCheckpoint(one, elsewhere(marks["later"], 900)),
        other.name: TableCheckpoint(other, elsewhere(marks["insert"], 100)),
    }
    end = ExitPoint(elsewhere(marks["later"], 900), "dump")
    old = Checkpoint(elsewhere(marks["prepare"], 500), tables, end)
    found = translate(RecordedNames(old, prepared(schema)), "0-1", relay, "s1", Event())
    assert found is not None
    start_of_next_file = Position(marks["later"].position.file)
    assert found.checkpoint.location == Location(start_of_next_file, marks["prepare"].gtid)
    assert found.checkpoint.tables[one.name] == TableCheckpoint(one, marks["later"])
    assert found.checkpoint.tables[other.name] == TableCheckpoint(other)
    assert found.checkpoint.exit_point == ExitPoint(marks["later"], "dump")
    (moved,) = found.prepared.values()
    assert (moved.begin, moved.end) == (marks["insert"], marks["prepare"].position.offset)


def test_a_prepare_that_the_new_server_does_not_have(relay: OwnFiles, schema: str, marks: Marks) -> None:
    old = Checkpoint(elsewhere(marks["insert"], 100))
    with pytest.raises(SyncError, match="SYNC-062"):
        translate(RecordedNames(old, prepared(schema)), "0-1", relay, "s1", Event())


def test_a_place_without_gtids(relay: OwnFiles, marks: Marks) -> None:
    old = Checkpoint(elsewhere(marks["insert"], 100), exit_point=ExitPoint(Location(Position(OLD, 900))))
    with pytest.raises(RelayError, match=r"RELAY-032.*began with server 0-1, now 0-2 answers"):
        translate(RecordedNames(old, {}), "0-1", relay, "s1", Event())


def test_transactions_in_another_order(relay: OwnFiles, marks: Marks) -> None:
    """Of two domains the old server had the later one first: no place is behind just that."""
    gtid = f"{marks['insert'].gtid},77-1-5"
    with pytest.raises(SyncError, match=r"SYNC-061.*77-1-5"):
        translate(RecordedNames(Checkpoint(Location(Position(OLD), gtid)), {}), "0-1", relay, "s1", Event())


def test_it_can_be_stopped(relay: OwnFiles, marks: Marks) -> None:
    stop = Event()
    stop.set()
    assert translate(RecordedNames(Checkpoint(elsewhere(marks["insert"], 100)), {}), "0-1", relay, "s1", stop) is None


def test_the_gtids_of_a_place(relay: OwnFiles, marks: Marks) -> None:
    for mark in marks.values():
        assert gtids_at(relay, mark.position, "s1") == mark.gtid
    inside = Position(marks["insert"].position.file, marks["insert"].position.offset - 10)
    assert gtids_at(relay, inside, "s1") == ""


@pytest.mark.parametrize("own", [False, True])
def test_a_transaction_of_its_own_before_the_place(schema: str, *, own: bool) -> None:
    """A row that somebody wrote to the replica took the number of the primary's next transaction."""
    with MariadbServer({"gtid_strict_mode": "OFF"}) as server:
        table = f"{schema}.t"
        server.run(f"CREATE DATABASE {schema}", f"CREATE TABLE {table} (id INT PRIMARY KEY)")
        ((end,),) = server.query("SELECT @@gtid_binlog_pos")
        domain, primary, number = (int(part) for part in end.split("-"))
        if own:
            server.run("SET SESSION server_id = 99", f"INSERT INTO {table} VALUES (1)")
        for row in (1, 2):
            server.run(f"SET SESSION gtid_seq_no = {number + row}", f"INSERT INTO {table} VALUES ({row + 10})")
        server.run(f"CREATE TABLE {schema}.made SELECT * FROM {table}", f"INSERT INTO {table} VALUES (20)")
        first = server.query("SHOW BINARY LOGS")[0][0]
        known = f"{domain}-{primary}-{number + 3}"
        old = Checkpoint(Location(Position(OLD, 500), known))
        names = RecordedNames(old, {})
        if own:
            with pytest.raises(SyncError, match="SYNC-061") as raised:
                translate(names, "0-1", OwnFiles(server, first), "s1", Event())
            assert raised.value.values["passed"] == f"{domain}-{primary}-{number + 1}"
        else:
            found = translate(names, "0-1", OwnFiles(server, first), "s1", Event())
            assert found is not None
            assert found.checkpoint.location.gtid == known
