"""A throwaway database server: a temporary folder, a loopback port, a process.

All of them are removed with the process that started it.
"""

from __future__ import annotations

import json
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
from unshard.testing.cache import cache_folder, made_once, short_sum
from unshard.testing.guard import GuardedProcess
from unshard.testing.programs import MissingProgramError

BOOT_SECONDS = 60.0
STOP_SECONDS = 60.0


class ServerBootError(RuntimeError):
    """Raised where a server did not start. The text ends with the last lines of its error log."""


class ThrowawayServer(ABC):
    """A database server for a test, user root without a password, reached at 127.0.0.1.

    It can be killed and started again with the same data and port. `close` (or the end of a `with` block) removes the
    data; so does the end of this process, in whatever way.

    Args:
        options: server variables, over `defaults`; an empty value leaves one of the defaults out.
        start: whether to boot at once (within 3 s, except for the very first server of a machine).
    """

    product: ClassVar[str]
    defaults: ClassVar[Mapping[str, str]]
    position_query: ClassVar[str] = "SHOW MASTER STATUS"
    has_json: ClassVar[bool] = True
    """Whether there is a type JSON, as there is not in MySQL before 5.7."""

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
        """The address and login of the server."""
        return Endpoint("127.0.0.1", self.port, "root")

    @property
    def running(self) -> bool:
        """True while its process runs."""
        return self._process is not None and not self._process.ended()

    @property
    def pid(self) -> int:
        """Process id of the running server. Raises RuntimeError if it does not run."""
        if self._process is None:
            raise RuntimeError("the server is not running")
        return self._process.pid

    def start(self) -> None:
        """Boot with the data and the port that the server keeps for good. Raises ServerBootError."""
        if self.running:
            return
        self._release()
        if not self._boot():
            raise ServerBootError(f"{self.product} did not start in {self.folder}:\n{self._log_tail()}")

    def stop(self) -> None:
        """Shut down in an orderly way; the data stays. Idempotent."""
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
        """End the server and remove its data. Idempotent."""
        self.kill()
        self._place.close()
        shutil.rmtree(self.folder, ignore_errors=True)

    def connection(self, database: str = "") -> Any:
        """Return a new connection for a test's own use: utf8mb4, autocommit, UTC. The caller closes it."""
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
        """Run one statement on a connection of its own. Returns its rows, none for a statement without a result."""
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
        """Return the server's own binlog files, oldest first; a server without a binlog has none."""
        return []

    def binlog_program(self) -> list[str]:
        """Return the command that prints this server's binlog files; arguments may follow.

        Raises MissingProgramError.
        """
        raise MissingProgramError(f"{self.product} has no binlog")

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    @abstractmethod
    def _template(self) -> Path:
        """Return a data folder that no server has ever used (see `template`)."""

    @abstractmethod
    def _command_line(self) -> list[str]:
        """Return the server program with all of its arguments."""

    def _boot(self) -> bool:
        """Start the process. Returns whether the server came up."""
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
    """A throwaway MySQL or MariaDB, which writes a row binlog."""

    def binlog_files(self) -> list[Path]:
        """As `ThrowawayServer.binlog_files`."""
        return [self.data / name for name, *_ in self.query("SHOW BINARY LOGS")]

    @abstractmethod
    def _command(self) -> list[str]:
        """Return the server program and its switches, up to and including `--no-defaults`."""

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


def template(server: str, made_of: object, make: Callable[[Path], None]) -> Path:
    """Return the data folder in the cache that `make` fills (see `made_once`). Raises ServerBootError.

    Args:
        server: product and version; the folder's name begins with it.
        made_of: the options and whatever else the data depend on; `json` must be able to dump it.
        make: gets an empty folder.
    """
    entry = cache_folder() / "templates" / f"{server}-{short_sum(json.dumps(made_of).encode())}"
    try:
        return made_once(entry, make)
    except OSError as error:
        raise ServerBootError(
            f"no empty data of a server can be kept in {entry.parent}: {error}; XDG_CACHE_HOME names another folder"
        ) from error


def as_user() -> list[str]:
    """Return the option without which the server refuses to run as root."""
    return ["--user=root"] if os.geteuid() == 0 else []


def reserved() -> socket.socket:
    """Return a socket that reserves a port for the one server that is told of it, even while the server is down.

    The socket never listens, so connections are refused meanwhile. A server can bind a port beside such a socket if
    both have SO_REUSEADDR, as the servers here have. The system never gives the port to a process that asks for any
    free port.
    """
    place = socket.socket()
    place.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    place.bind(("127.0.0.1", 0))
    return place
