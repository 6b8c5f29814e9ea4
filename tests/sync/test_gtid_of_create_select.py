"""CREATE TABLE … SELECT is a statement and rows in one group of the log: both happened, or none, and so its GTID."""

from __future__ import annotations

from contextlib import closing
from pathlib import Path

import pytest

from unshard.model.gtid import MariadbGtidSet
from unshard.model.position import Location, Position
from unshard.sync.source_log.reader import LoggedDdl, Move, TransactionRows, Work, next_work
from unshard.testing.mariadb_server import MariadbServer

pytestmark = pytest.mark.server


class OneFile:
    """A log of one file, behind which there may be `another`, which is not read."""

    def __init__(self, path: Path, another: str | None = None) -> None:
        self.only, self.another = path, another

    def path(self, file: str) -> Path:
        return self.only

    def next_file(self, file: str) -> str | None:
        return self.another


def works(server: MariadbServer, budget: int) -> list[Work]:
    ((name, size, *_),) = server.query("SHOW BINARY LOGS")
    found: list[Work] = []
    at = Location(Position(name), "")
    log = OneFile(server.data / name)
    while (work := next_work(log, at, Position(name, int(size)), budget, "s1")) is not None:
        found.append(work)
        at = work.end
    return found


@pytest.mark.parametrize("compressed", ["OFF", "ON"])
@pytest.mark.parametrize("budget", [1, 1 << 20])
@pytest.mark.parametrize("rows", [0, 2, 3000])
def test_the_end_of_the_log_has_all_gtids(rows: int, budget: int, compressed: str) -> None:
    with MariadbServer({"log_bin_compress": compressed, "log_bin_compress_min_len": "10"}) as server:
        server.run(
            "CREATE DATABASE d",
            f"CREATE TABLE d.a SELECT seq AS id FROM mysql.seq_1_to_3000 WHERE seq <= {rows}",
            "CREATE TABLE d.b SELECT * FROM d.a",
        )
        found = works(server, budget)
        ((state,),) = server.query("SELECT @@global.gtid_binlog_pos")
    assert MariadbGtidSet.parse(found[-1].end.gtid) == MariadbGtidSet.parse(state)
    made = [place for place, work in enumerate(found) if isinstance(work, LoggedDdl) and not work.statement.whole]
    assert len(made) == 2
    for place in made:
        statement, behind = found[place], found[place + 1]
        assert isinstance(statement, LoggedDdl)
        assert isinstance(behind, TransactionRows if rows else Move | LoggedDdl)
        gtid = statement.statement.gtid
        assert gtid not in statement.end.gtid.split(","), "its rows are to be applied yet"
        assert gtid in behind.end.gtid.split(",")


@pytest.mark.parametrize("ended", [True, False])
def test_a_statement_whose_rows_are_not_complete_never_happened(ended: bool, tmp_path: Path) -> None:
    """As where the source was killed in the middle of them; or where they are still to come."""
    with MariadbServer() as server:
        server.run("CREATE DATABASE d", "CREATE TABLE d.a SELECT seq AS id FROM mysql.seq_1_to_3000")
        (name, _, *_) = server.query("SHOW BINARY LOGS")[0]
        whole = (server.data / name).read_bytes()
        made, statement, rows = works(server, 1)
    assert isinstance(statement, LoggedDdl)
    assert isinstance(rows, TransactionRows)
    for size in (statement.end.position.offset, rows.end.position.offset - 1, len(whole)):
        (tmp_path / name).write_bytes(whole[:size])
        log = OneFile(tmp_path / name, "b.000002" if ended else None)
        written = Position("b.000002", 4) if ended else Position(name, size)
        found = next_work(log, made.end, written, 1 << 20, "s1")
        if size == len(whole):
            assert found == statement
        else:
            assert found == (Move(Location(Position("b.000002"), made.end.gtid)) if ended else None)


def test_temporary_tables_in_transactions_of_a_session_that_does_not_log_rows() -> None:
    """All of each transaction is read, what follows them is too, and the GTIDs are the server's."""
    with MariadbServer() as server:
        server.run("CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY, v CHAR(36)) ENGINE=InnoDB")
        with closing(server.connection("d")) as session, session.cursor() as cursor:
            for statement in (
                "SET binlog_format = MIXED",
                *("BEGIN", "CREATE TEMPORARY TABLE a (x INT)", "CREATE TEMPORARY TABLE b (x INT)", "COMMIT"),
                *("BEGIN", "CREATE TEMPORARY TABLE c (x INT)", "ROLLBACK"),
                *("BEGIN", "CREATE TEMPORARY TABLE e (x INT)", "SAVEPOINT p", "INSERT INTO t VALUES (1, UUID())"),
                *("DROP TEMPORARY TABLE a", "INSERT INTO t VALUES (2, UUID())", "COMMIT"),
                *("SET autocommit = 0", "DROP TEMPORARY TABLE b", "INSERT INTO t VALUES (3, UUID())", "COMMIT"),
            ):
                cursor.execute(statement)
        server.run("INSERT INTO d.t VALUES (4, 'x')")
        found = works(server, 1)
        ((state,),) = server.query("SELECT @@global.gtid_binlog_pos")
    made = [work.statement.sql for work in found if isinstance(work, LoggedDdl)]
    assert [sql.split()[3] for sql in made if "TEMPORARY" in sql] == ["a", "b", "c", "e"]
    assert sum(work.log_range.row_events for work in found if isinstance(work, TransactionRows)) == 4
    assert MariadbGtidSet.parse(found[-1].end.gtid) == MariadbGtidSet.parse(state)
