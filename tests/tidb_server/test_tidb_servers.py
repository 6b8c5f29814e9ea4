"""The throwaway TiDB keeps its data over a crash, whole transactions only, and dies with its process."""

from __future__ import annotations

import random
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import MySQLdb
import pytest

from support.waiting import wait_until
from unshard.testing.programs import MissingProgramError
from unshard.testing.throwaway_server import ServerBootError
from unshard.testing.tidb_server import TidbServer, tidb_program

pytestmark = pytest.mark.server


def test_data_and_port_outlive_a_kill_and_a_stop() -> None:
    with TidbServer() as server:
        port = server.port
        server.run("CREATE DATABASE a", "CREATE TABLE a.t (id INT PRIMARY KEY)", "INSERT INTO a.t VALUES (1)")
        server.kill()
        assert not server.running
        server.start()
        server.run("INSERT INTO a.t VALUES (2)")
        server.stop()
        server.start()
        assert server.port == port
        assert server.query("SELECT id FROM a.t ORDER BY id") == [(1,), (2,)]
        assert server.binlog_files() == []
    assert not server.folder.exists()


def test_a_killed_server_has_kept_whole_transactions_and_all_that_were_acknowledged() -> None:
    noted = {"acknowledged": 0, "tried": 0}

    def write(server: TidbServer) -> None:
        try:
            connection = server.connection("a")
            with connection.cursor() as cursor:
                for number in range(noted["tried"] + 1, 1_000_000):
                    noted["tried"] = number
                    rows = ",".join(f"({n}, {number}, '{'x' * 100}')" for n in range(400 if number % 2 else 3))
                    cursor.execute("BEGIN")
                    cursor.execute(f"UPDATE counter SET n = {number}")
                    cursor.execute(f"REPLACE INTO t VALUES {rows}")
                    cursor.execute(f"DELETE FROM t WHERE n <> {number}")
                    cursor.execute("COMMIT")
                    noted["acknowledged"] = number
        except MySQLdb.Error:
            return

    with TidbServer() as server:
        server.run(
            "CREATE DATABASE a",
            "CREATE TABLE a.t (id INT PRIMARY KEY, n INT, text VARCHAR(100), KEY (n))",
            "CREATE TABLE a.counter (n INT)",
            "INSERT INTO a.counter VALUES (0)",
        )
        for _ in range(5):
            before = noted["acknowledged"]
            writer = threading.Thread(target=write, args=(server,))
            writer.start()
            wanted = before + 5 + random.randrange(20)
            wait_until(lambda wanted=wanted: noted["acknowledged"] >= wanted, "transactions")  # type: ignore[misc]
            server.kill()
            writer.join()
            server.start()
            ((found,),) = server.query("SELECT n FROM a.counter")
            assert found in (noted["acknowledged"], noted["tried"])
            assert server.query("SELECT DISTINCT n FROM a.t") == [(found,)]
            server.run("ADMIN CHECK TABLE a.t")
            noted["tried"] = found


def test_a_read_sees_what_was_committed_before_it_began() -> None:
    """Unlike in the store as it comes: there a read missed a row whose commit, in one phase, had its moment already."""
    keys, writers = 1000, 4
    together = threading.Barrier(writers, timeout=60)

    def write(server: TidbServer) -> int:
        connection = server.connection("a")
        connection.autocommit(True)
        added = 0
        with connection.cursor() as cursor:
            for key in range(keys):
                together.wait()
                added += cursor.execute(f"INSERT IGNORE INTO t VALUES ({key})")  # error 8141 where it misses the row
        connection.close()
        return added

    with TidbServer() as server, ThreadPoolExecutor(writers) as pool:
        server.run("CREATE DATABASE a", "CREATE TABLE a.t (id INT PRIMARY KEY)")
        assert sum(pool.map(write, [server] * writers)) == keys


def test_its_configuration_decides() -> None:
    with TidbServer({"server-version": '"5.7.25-TiDB-v6.1.7"', "performance.txn-entry-size-limit": "100000"}) as server:
        assert server.query("SELECT VERSION()") == [("5.7.25-TiDB-v6.1.7",)]
        server.run("CREATE DATABASE a", "CREATE TABLE a.t (id INT PRIMARY KEY, text LONGTEXT)")
        with pytest.raises(MySQLdb.Error, match="8025"):
            server.run(f"INSERT INTO a.t VALUES (1, '{'x' * 200000}')")
    with TidbServer({"new_collations_enabled_on_first_bootstrap": "false"}) as server:
        answer = server.query("SELECT VARIABLE_VALUE FROM mysql.tidb WHERE VARIABLE_NAME = 'new_collation_enabled'")
        assert answer == [("False",)]


def test_a_server_that_cannot_start_says_why() -> None:
    with pytest.raises(ServerBootError, match="no_such"):
        TidbServer({"store": '"no_such"'})


def test_a_program_that_is_not_there_names_the_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("UNSHARD_TIDB_ROOT", str(tmp_path))
    with pytest.raises(MissingProgramError, match="tools/test-servers tidb"):
        tidb_program()
