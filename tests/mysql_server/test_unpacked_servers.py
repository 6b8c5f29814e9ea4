"""The unpacked servers keep their data over a crash, are servers of their own, and die with their process."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from support.waiting import wait_until
from unshard.testing import mysql_server
from unshard.testing.mysql_server import (
    Mysql56Server,
    Mysql80Server,
    MysqlServer,
    OldMariadbServer,
    OtherMariadbServer,
    mysqlbinlog,
)
from unshard.testing.programs import MissingProgramError
from unshard.testing.server_trees import server_tree
from unshard.testing.throwaway_server import ServerBootError, ThrowawayServer

pytestmark = pytest.mark.server

HOLDER = """
import time
from unshard.testing.mysql_server import MysqlServer
server = MysqlServer()
print(server.pid, server.folder, flush=True)
time.sleep(600)
"""


@pytest.mark.parametrize("kind", [MysqlServer, OtherMariadbServer, Mysql80Server, Mysql56Server, OldMariadbServer])
def test_data_and_port_outlive_a_kill_and_a_stop(kind: type[ThrowawayServer]) -> None:
    with kind() as server:
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
        assert len(server.binlog_files()) == 3
    assert not server.folder.exists()


def test_a_mysql_boots_without_making_its_data_once_one_has(
    mysql_source: MysqlServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(mysql_server, "initialize", lambda command, fresh: pytest.fail("made again"))
    with MysqlServer({"binlog_row_metadata": "FULL"}) as server:
        ((metadata, uuid),) = server.query("SELECT @@binlog_row_metadata, @@server_uuid")
        assert metadata == "FULL"
        assert mysql_source.query("SELECT @@server_uuid") != [(uuid,)]


def test_a_mysql_that_cannot_start_says_why() -> None:
    with pytest.raises(ServerBootError, match="no_such_option"):
        MysqlServer({"no_such_option": "1"})


def test_mysqlbinlog_reads_a_file(mysql_source: MysqlServer) -> None:
    file = mysql_source.binlog_files()[0]
    shown = subprocess.run([*mysqlbinlog(), str(file)], capture_output=True, check=True)
    assert b"server id" in shown.stdout


def test_a_tree_that_is_not_there_names_the_command(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("UNSHARD_MYSQL_ROOT", str(tmp_path))
    with pytest.raises(MissingProgramError, match="`tools/test-servers mysql`"):
        server_tree("mysql")


def test_server_and_data_die_with_a_killed_parent() -> None:
    tests = Path(mysql_server.__file__).parents[1]  # where the child finds `support`
    holder = subprocess.Popen([sys.executable, "-c", HOLDER], stdout=subprocess.PIPE, text=True, cwd=tests)
    assert holder.stdout is not None
    pid, folder = holder.stdout.readline().split()
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    holder.stdout.close()
    wait_until(lambda: not Path(folder).exists(), "its folder is gone")
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid), 0)
