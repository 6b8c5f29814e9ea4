"""A task of the fault matrix with its files, and the `unshard run` that runs it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import psutil

from unshard.model.position import Position
from unshard.testing.mariadb_server import MariadbServer

_UNSHARD = str(Path(sys.executable).with_name("unshard"))
_STOP_SECONDS = 60.0


@dataclass(frozen=True, slots=True)
class TaskFolder:
    """The folder of a task from one source. Relay log and dump are in `disk`; servers are reached by other ports.

    Nothing is compacted and batches are small, so that every change shows in the target's binlog.
    """

    folder: Path
    disk: Path
    name: str
    source: MariadbServer
    target: MariadbServer
    source_port: int
    target_port: int
    schema: str

    def command(self) -> list[str]:
        """Write both files. Returns the command that runs the task."""
        database = {"host": "127.0.0.1", "user": "root"}
        upstream = {
            "source-id": "s1",
            "relay-dir": str(self.disk / "relay"),
            "from": {**database, "port": self.source_port},
        }
        own = {"block-allow-list": "own", "loader-config-name": "own", "syncer-config-name": "own"}
        task = {
            "name": self.name,
            "task-mode": "all",
            "target-database": {**database, "port": self.target_port},
            "mysql-instances": [{"source-id": "s1", **own}],
            "block-allow-list": {"own": {"do-dbs": [self.schema]}},
            "loaders": {"own": {"dir": str(self.disk / "dump")}},
            "syncers": {"own": {"checkpoint-flush-interval": 1, "compact": False, "batch": 20, "worker-count": 2}},
        }
        for file, form in (("s1.yaml", upstream), ("task.yaml", task)):
            (self.folder / file).write_text(json.dumps(form))  # which is YAML too
        log = str(self.folder / "unshard.log")
        return [_UNSHARD, "run", str(self.folder / "task.yaml"), "-s", str(self.folder / "s1.yaml"), "--log", log]

    def caught_up(self) -> bool:
        """Return whether the checkpoint in the target is at the source's newest byte."""
        meta = "dm_meta", f"{self.name}_syncer_checkpoint"
        known = "SELECT 1 FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s"
        if not self.target.query(known, meta):
            return False
        found = self.target.query(f"SELECT binlog_name, binlog_pos FROM `{meta[0]}`.`{meta[1]}` WHERE is_global")
        ((file, offset, *_),) = self.source.query(self.source.position_query)
        return bool(found) and Position(found[0][0], int(found[0][1])) >= Position(file, int(offset))


class RunningTask:
    """`unshard run` as a child, in a process group of its own. Its output is appended to a file of the folder."""

    def __init__(self, task: TaskFolder) -> None:
        self._output = task.folder / "output.txt"
        with self._output.open("ab") as sink:
            self._child = subprocess.Popen(
                task.command(),
                cwd=task.folder,
                stdin=subprocess.DEVNULL,
                stdout=sink,
                stderr=sink,
                start_new_session=True,
            )

    @property
    def alive(self) -> bool:
        return self._child.poll() is None

    @property
    def last_line(self) -> str:
        """The end of what it printed."""
        lines = self._output.read_text(errors="replace").strip().splitlines()
        return " ".join(lines[-3:])[-600:] if lines else ""

    def signal_all(self, number: signal.Signals) -> None:
        """Send a signal to every process below it, also to those of other groups."""
        with suppress(ProcessLookupError):
            os.killpg(self._child.pid, number)
        for child in psutil.Process(self._child.pid).children(recursive=True):
            with suppress(ProcessLookupError, psutil.NoSuchProcess):
                child.send_signal(number)

    def interrupt(self) -> int:
        """Send SIGINT as Ctrl-C does. Returns the exit code."""
        with suppress(ProcessLookupError):
            os.killpg(self._child.pid, signal.SIGINT)
        try:
            return self._child.wait(_STOP_SECONDS)
        except subprocess.TimeoutExpired:
            self.kill()
            return -signal.SIGKILL

    def kill(self) -> None:
        """Send SIGKILL to its group. Idempotent."""
        if self._child.poll() is None:
            self._child.kill()
            self._child.wait()
        with suppress(ProcessLookupError):
            os.killpg(self._child.pid, signal.SIGKILL)
