"""Throwaway servers: they keep their data over a crash, and die with the process that started them."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from support.waiting import wait_until
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.throwaway_server import ServerBootError

pytestmark = pytest.mark.server

HOLDER = """
import sys, time
from unshard.testing.mariadb_server import MariadbServer
server = MariadbServer()
print(server.pid, server.folder, flush=True)
time.sleep(600)
"""


def test_data_and_port_outlive_a_kill_and_a_stop() -> None:
    with MariadbServer() as server:
        port = server.port
        server.run("CREATE DATABASE a", "CREATE TABLE a.t (id INT PRIMARY KEY)", "INSERT INTO a.t VALUES (1)")
        server.kill()
        assert not server.running
        with socket.socket() as other, pytest.raises(OSError, match="in use"):
            other.bind(("127.0.0.1", port))
        server.start()
        server.run("INSERT INTO a.t VALUES (2)")
        server.stop()
        server.start()
        assert server.port == port
        assert server.query("SELECT id FROM a.t ORDER BY id") == [(1,), (2,)]
        assert len(server.binlog_files()) == 3
    assert not server.folder.exists()


def test_options_reach_the_server_and_an_empty_one_is_left_out() -> None:
    with MariadbServer({"binlog_row_image": "MINIMAL", "log_bin": ""}) as server:
        assert server.query("SELECT @@global.binlog_row_image, @@global.log_bin") == [("MINIMAL", 0)]


def test_a_server_that_cannot_start_says_why() -> None:
    with pytest.raises(ServerBootError, match="no_such_option"):
        MariadbServer({"no_such_option": "1"})


def test_server_and_data_die_with_a_killed_parent() -> None:
    holder = subprocess.Popen([sys.executable, "-c", HOLDER], stdout=subprocess.PIPE, text=True)
    assert holder.stdout is not None
    pid, folder = holder.stdout.readline().split()
    holder.send_signal(signal.SIGKILL)
    holder.wait()
    holder.stdout.close()
    wait_until(lambda: not Path(folder).exists(), "its folder is gone")
    with pytest.raises(ProcessLookupError):
        os.kill(int(pid), 0)
