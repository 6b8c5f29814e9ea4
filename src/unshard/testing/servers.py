"""Throwaway MariaDB servers: those that Debian's package has installed on this machine."""

from __future__ import annotations

import getpass
import os
import shutil
import signal
import socket
import subprocess
import tempfile
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, ClassVar, Self

import MySQLdb

from unshard.mysql.connection import Endpoint
from unshard.testing.guard import GuardedProcess
from unshard.testing.programs import MissingProgramError, program

# What every throwaway database server has: a temp folder, a loopback port, gone with the process that started it.


BOOT_SECONDS = 60.0
STOP_SECONDS = 60.0


class ServerBootError(RuntimeError):
    """A server did not come up; the text ends with the last lines of its own error log."""


class ThrowawayServer(ABC):
    """One throwaway database server, user root without a password, reached at 127.0.0.1.

    It can be killed and started again on the same data and port. `close` (or the end of a `with` block) removes
    the data; so does the death of this process, however it dies.

    Args:
        options: server variables, over `defaults`; an empty value leaves one of them out.
        start: whether to boot at once (within 3 s, after the very first server of a machine).
    """

    product: ClassVar[str]
    defaults: ClassVar[Mapping[str, str]]
    position_query: ClassVar[str] = "SHOW MASTER STATUS"

    def __init__(self, options: Mapping[str, str] | None = None, *, start: bool = True) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="unshard-"))
        self.data = self.folder / "data"
        self.options = {**self.defaults, **(options or {})}
        self._place = reserved()
        self.port = int(self._place.getsockname()[1])
        self._process: GuardedProcess | None = None
        # sparse: a server may have reserved much more for its log than it has written
        subprocess.run(["cp", "-r", "--sparse=always", str(self._template()), str(self.data)], check=True)
        if start:
            self.start()

    @property
    def endpoint(self) -> Endpoint:
        return Endpoint("127.0.0.1", self.port, "root")

    @property
    def running(self) -> bool:
        return self._process is not None and not self._process.ended()

    @property
    def pid(self) -> int:
        """Process id of the running server. Raises RuntimeError when it doesn't run."""
        if self._process is None:
            raise RuntimeError("the server is not running")
        return self._process.pid

    def start(self) -> None:
        """Boot on the data and on the one port that it has for good. Raises ServerBootError."""
        if self.running:
            return
        self._release()
        if not self._boot():
            raise ServerBootError(f"{self.product} did not start in {self.folder}:\n{self._log_tail()}")

    def stop(self) -> None:
        """Shut down in good order; the data stays. Idempotent."""
        if self._process is not None:
            self._process.signal(signal.SIGTERM)
            if not self._process.ended(STOP_SECONDS):
                self._process.signal(signal.SIGKILL)
            self._release()

    def kill(self) -> None:
        """End it with SIGKILL, as a crash would; the data stays. Idempotent."""
        if self._process is not None:
            self._process.signal(signal.SIGKILL)
            self._release()

    def close(self) -> None:
        """End it and remove its data. Idempotent."""
        self.kill()
        self._place.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def connection(self, database: str = "") -> Any:
        """A new connection for a test's own use: utf8mb4, autocommit, UTC. The caller closes it."""
        return MySQLdb.connect(
            host="127.0.0.1",
            port=self.port,
            user="root",
            database=database,
            charset="utf8mb4",
            autocommit=True,
            init_command="SET time_zone = '+00:00'",
        )

    def query(self, sql: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
        """Run one statement on a connection of its own; its rows, none for a statement without."""
        connection = self.connection()
        try:
            with connection.cursor() as cursor:
                cursor.execute(sql, tuple(values) or None)
                return list(cursor.fetchall())
        finally:
            connection.close()

    def run(self, *statements: str, database: str = "") -> None:
        """Run several statements, in order, on one connection."""
        connection = self.connection(database)
        try:
            with connection.cursor() as cursor:
                for statement in statements:
                    cursor.execute(statement)
        finally:
            connection.close()

    def binlog_files(self) -> list[Path]:
        """The server's own binlog files, oldest first; a server without a binlog has none."""
        return []

    def binlog_program(self) -> list[str]:
        """The command that shows this server's binlog files; arguments may follow. Raises MissingProgramError."""
        raise MissingProgramError(f"{self.product} has no binlog")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @abstractmethod
    def _template(self) -> Path:
        """A data folder that no server ever ran on (see `made_once`)."""

    @abstractmethod
    def _command_line(self) -> list[str]:
        """The server program with all of its arguments."""

    def _boot(self) -> bool:
        """Whether the server came up."""
        self._process = GuardedProcess(self._command_line(), self.folder)
        deadline = time.monotonic() + BOOT_SECONDS
        while time.monotonic() < deadline:
            if self._process.ended(0.02):
                self._release()
                return False
            if self._answers():
                return True
        self.kill()
        return False

    def _answers(self) -> bool:
        try:
            MySQLdb.connect(host="127.0.0.1", port=self.port, user="root", connect_timeout=5).close()
        except MySQLdb.Error:
            return False
        return True

    def _release(self) -> None:
        if self._process is not None:
            self._process.release()
            self._process = None

    @property
    def _log(self) -> Path:
        return self.folder / "error.log"

    def _log_tail(self) -> str:
        return "\n".join(self._log.read_text(errors="replace").splitlines()[-15:]) if self._log.exists() else ""


class LoggingServer(ThrowawayServer):
    """A throwaway MySQL or MariaDB, which keeps a row binlog."""

    def binlog_files(self) -> list[Path]:
        return [self.data / name for name, *_ in self.query("SHOW BINARY LOGS")]

    @abstractmethod
    def _command(self) -> list[str]:
        """The server program and its switches, up to and with `--no-defaults`."""

    def _command_line(self) -> list[str]:
        own = {
            "datadir": self.data,
            "tmpdir": self.folder,
            "socket": self.folder / "socket",
            "pid_file": self.folder / "pid",
            "log_error": self._log,
            "bind_address": "127.0.0.1",
            "port": self.port,
        }
        server_id = {"server_id": str(self.port)} | self.options
        settings = [f"--{name}={value}" for name, value in (own | server_id).items() if value != ""]
        return [*self._command(), "--skip-name-resolve", *as_user(), *settings]


def made_once(name: str, make: Callable[[Path], None]) -> Path:
    """The folder of that name that `make` fills, made once a machine and user; whole or not at all.

    `make` gets an empty folder. Another process may make the same one at the same time: one of both stays.
    """
    template = Path(tempfile.gettempdir()) / f"unshard-template-{getpass.getuser()}-{name}"
    if template.exists():
        return template
    fresh = Path(tempfile.mkdtemp(prefix="unshard-template-"))
    try:
        make(fresh)
        fresh.rename(template)
    except OSError:
        if not template.exists():
            raise
    finally:
        shutil.rmtree(fresh, ignore_errors=True)
    return template


def as_user() -> list[str]:
    """The server refuses to run as root unless it is told to."""
    return ["--user=root"] if os.geteuid() == 0 else []


def reserved() -> socket.socket:
    """A socket that keeps a port from everybody but a server that is told of it, also while that one is down.

    It never listens, so that connections are refused meanwhile. A server binds a port beside such a socket where both
    have SO_REUSEADDR, as the servers here have; the system never gives it to those who ask for any port.
    """
    place = socket.socket()
    place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    place.bind(("127.0.0.1", 0))
    return place


__all__ = ["MariadbServer", "ServerBootError"]


class MariadbServer(LoggingServer):
    """A MariaDB, as installed here. Boots in a quarter of a second."""

    product = "MariaDB"
    defaults: ClassVar[Mapping[str, str]] = {
        "log_bin": "mysql-bin",
        "binlog_format": "ROW",
        "binlog_row_image": "FULL",
        "binlog_checksum": "CRC32",
        "gtid_strict_mode": "ON",
        "sync_binlog": "0",
        "character_set_server": "utf8mb4",
        "innodb_buffer_pool_size": "64M",
        "innodb_log_file_size": "16M",
        "innodb_flush_log_at_trx_commit": "2",  # a killed process loses nothing of it; only a power cut would
        "key_buffer_size": "1M",
        "aria_pagecache_buffer_size": "2M",
        "max_connections": "200",
        "max_allowed_packet": "64M",
    }

    def _command(self) -> list[str]:
        return [program("mariadbd"), "--no-defaults"]

    def binlog_program(self) -> list[str]:
        return [program("mariadb-binlog")]

    def _template(self) -> Path:
        version = subprocess.run([program("mariadbd"), "--version"], capture_output=True, text=True, check=True).stdout
        name = "".join(letter if letter.isalnum() else "-" for letter in version.split("Ver ")[-1].split()[0])
        return made_once(name, _install)


def _install(fresh: Path) -> None:
    """Fill an empty data folder. Raises ServerBootError."""
    made = subprocess.run(
        [
            program("mariadb-install-db"),
            "--no-defaults",
            f"--datadir={fresh}",
            "--auth-root-authentication-method=normal",
            "--skip-test-db",
            "--skip-name-resolve",
            "--innodb-log-file-size=16M",
            *as_user(),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode != 0:
        raise ServerBootError(f"mariadb-install-db failed:\n{made.stdout[-2000:]}{made.stderr[-2000:]}")
