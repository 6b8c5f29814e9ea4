"""A task that begins behind an event that is refused: what lies before the event is still found in the log."""

from __future__ import annotations

from contextlib import closing

import pytest

from support.own_files import OwnFiles
from unshard.errors import BinlogError
from unshard.model.position import Location, Position
from unshard.sync.source_log.prepared_xa import look_back, rows_of
from unshard.sync.source_log.reader import Complete, next_work
from unshard.sync.source_log.seek import gtids_at
from unshard.testing.mariadb_server import MariadbServer

pytestmark = pytest.mark.server

BY_STATEMENT = "INSERT INTO {0} VALUES (9)"


class Server:
    """Writes to a table, and knows where the log is."""

    def __init__(self, server: MariadbServer, schema: str) -> None:
        self.server, self.table, self.xid = server, f"{schema}.t", schema
        server.run(f"CREATE DATABASE {schema}", f"CREATE TABLE {self.table} (id INT PRIMARY KEY)", "FLUSH BINARY LOGS")
        self.first = self.now().position.file

    def now(self) -> Location:
        ((file, offset, *_),) = self.server.query("SHOW MASTER STATUS")
        ((gtid,),) = self.server.query("SELECT BINLOG_GTID_POS(%s, %s)", (file, offset))
        return Location(Position(file, int(offset)), gtid)

    def write(self, *statements: str) -> None:
        self.server.run(*(one.format(self.table, self.xid) for one in statements))

    def write_by_statement(self, *statements: str) -> None:
        with closing(self.server.connection()) as session, session.cursor() as cursor:
            for one in ("SET binlog_format = STATEMENT", *statements):
                cursor.execute(one.format(self.table, self.xid))

    def files(self) -> OwnFiles:
        return OwnFiles(self.server, self.first)


@pytest.fixture
def server(source_server: MariadbServer, schema: str) -> Server:
    return Server(source_server, schema)


def test_the_gtids_of_a_place_behind_it(server: Server) -> None:
    server.write("INSERT INTO {0} VALUES (1)", "INSERT INTO {0} VALUES (2)")
    server.write_by_statement(BY_STATEMENT, "DELETE FROM {0} WHERE id = 9")
    behind = server.now()
    server.write("INSERT INTO {0} VALUES (3)")
    later = server.now()
    files = server.files()
    assert gtids_at(files, behind.position, "s1") == behind.gtid
    assert gtids_at(files, later.position, "s1") == later.gtid
    assert gtids_at(files, Position(behind.position.file, behind.position.offset - 1), "s1") == ""


def committed(server: Server, begin: Position) -> Complete:
    """The commit that begins there."""
    server.write("XA COMMIT '{1}'")
    found = next_work(server.files(), Location(begin), server.now().position, 1, "s1")
    assert isinstance(found, Complete)
    return found


PREPARE = ("XA START '{1}'", "INSERT INTO {0} VALUES (5)", "XA END '{1}'", "XA PREPARE '{1}'")


@pytest.mark.parametrize("first", ["the event", "the prepare"])
def test_a_prepared_transaction(first: str, server: Server) -> None:
    if first == "the prepare":
        server.write(*PREPARE)
    server.write_by_statement(BY_STATEMENT)
    if first == "the event":
        server.write(*PREPARE)
    work = committed(server, server.now().position)
    found = look_back(server.files(), work, "s1")
    assert found is not None
    rows = rows_of(server.files(), found, work.begin, work.end, 0, "s1")
    assert [name.table for name in rows.log_range.tables] == ["t"]


def test_a_prepared_transaction_that_is_refused_itself(server: Server) -> None:
    """Its rows can't be read, so it is not taken for one that was prepared before the log begins."""
    server.write_by_statement("XA START '{1}'", BY_STATEMENT, "XA END '{1}'", "XA PREPARE '{1}'")
    work = committed(server, server.now().position)
    with pytest.raises(BinlogError, match="BINLOG-034"):
        look_back(server.files(), work, "s1")
