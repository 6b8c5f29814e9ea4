"""The fault matrix: what happens to a task in each phase, and whether each change arrives, once.

A cell is a task between the two servers of the matrix, on a schema of its own. It is brought to a standstill in the
middle of a phase by a lock, the fault happens, the lock is released, and the task goes on. Then the tables are compared
and the binlogs of both servers are read by `mariadb-binlog`.
"""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from bench.report.commands import RunningTask, TaskFolder
from bench.report.size import Size
from unshard.testing.applied_once import not_once
from unshard.testing.binlog_count import row_log
from unshard.testing.compare import compare
from unshard.testing.hold import stands_still
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.proxy import FaultProxy
from unshard.testing.workload import Workload, WorkPlan

PHASES = ("dump", "load", "sync", "DDL")
_PATIENCE_SECONDS = 120.0
_PAUSE_SECONDS = 3.0
_DISK_BYTES = 48 << 20
_CODE = re.compile(r"\b[A-Z]+-\d{3}\b")
_FILLED_ROWS = 300
_MINUTES = 16
"""After them no further cell is begun: what is known by then is in the report."""

_TRANSACTIONS = 40


class NotInThisPhaseError(RuntimeError):
    """A cell can't be run here; the text says why."""


class WrongError(RuntimeError):
    """A cell went wrong: the task ended, hung, or the target has other rows."""


@dataclass(slots=True)
class Cell:
    """One task, its servers, and what the faults act upon.

    With `may_stop` the fault may end the task with an error of its own, as a user would see it; it is then started
    again, and `stopped` is the code of that error.
    """

    source: MariadbServer
    target: MariadbServer
    upstream: FaultProxy
    downstream: FaultProxy
    task: TaskFolder
    work: Workload
    running: RunningTask | None = None
    locks: ExitStack = field(default_factory=ExitStack)
    may_stop: bool = False
    stopped: str = ""

    @property
    def command(self) -> RunningTask:
        if self.running is None:
            raise RuntimeError("the task has not been started")
        return self.running

    @property
    def table(self) -> str:
        return self.work.plan.names[0].quoted

    def start(self) -> None:
        self.running = RunningTask(self.task)

    def end(self) -> None:
        if self.running is not None:
            self.running.kill()

    def lock(self, server: MariadbServer, *statements: str) -> None:
        """Run statements on a connection that stays open until `release`."""
        connection = server.connection()
        self.locks.callback(_close, connection)
        connection.autocommit(False)
        with connection.cursor() as cursor:
            for statement in statements:
                cursor.execute(statement)

    def release(self) -> None:
        self.locks.close()

    def wait(self, done: Callable[[], bool], what: str) -> None:
        """Wait for a condition. Raises WrongError if the task ends or too much time passes."""
        deadline = time.monotonic() + _PATIENCE_SECONDS
        while not done():
            if self.running is not None and not self.running.alive:
                if self.may_stop and not self.stopped and (code := _CODE.search(self.running.last_line)):
                    self.stopped = code[0]
                    self.start()
                    continue
                raise WrongError(f"the task ended before it was {what}: {self.running.last_line}")
            if time.monotonic() > deadline:
                told = self.running.last_line if self.running is not None else ""
                raise WrongError(f"not {what} in {_PATIENCE_SECONDS:.0f} s: {told}")
            time.sleep(0.05)

    def catch_up(self) -> None:
        self.wait(self.task.caught_up, "caught up")


def _kill(cell: Cell) -> None:
    """SIGKILL to all processes of the task; it is started again."""
    cell.command.kill()
    cell.release()
    cell.start()


def _freeze(cell: Cell) -> None:
    """All processes of the task are stopped for a while."""
    cell.command.signal_all(signal.SIGSTOP)
    cell.release()
    time.sleep(_PAUSE_SECONDS)
    cell.command.signal_all(signal.SIGCONT)


def _cut(cell: Cell) -> None:
    """All connections to both servers are cut, and for a while new ones are refused."""
    for proxy in (cell.upstream, cell.downstream):
        proxy.refuse()
    cell.release()
    time.sleep(1.0)
    for proxy in (cell.upstream, cell.downstream):
        proxy.refuse(False)


def _disk_full(cell: Cell) -> None:
    """The file system of relay log and dump is filled while the source writes on; then the room is there again."""
    filler = cell.task.disk / "filler"
    with filler.open("wb", buffering=0) as file, suppress(OSError):
        while True:
            file.write(b"\0" * 65_536)
    cell.release()
    cell.source.run(f"UPDATE {cell.table} SET pad = REPEAT('x', 50)")
    time.sleep(_PAUSE_SECONDS)
    filler.unlink()
    cell.may_stop = True


def _restart_target(cell: Cell) -> None:
    """The target's server is killed and started again."""
    _restart(cell.target, cell)


def _restart_source(cell: Cell) -> None:
    """The source's server is killed and started again."""
    _restart(cell.source, cell)


FAULTS: dict[str, Callable[[Cell], None]] = {
    "the task is killed": _kill,
    "the task is frozen": _freeze,
    "connections are cut": _cut,
    "the disk is full": _disk_full,
    "the target restarts": _restart_target,
    "the source restarts": _restart_source,
}


def run(size: Size) -> dict[str, Any]:
    """Return `{"phases", "faults": {fault: {phase: cell}}, "wrong": cells that failed}`.

    A cell has `seconds`, `changes` (the row changes of its binlog), and `stopped` (the code of the error with which the
    task ended before it was started again, or ""); or the `reason` why it was not run or failed. The
    smallest matrix has one cell, a quick one all faults in the sync.
    """
    begun = time.monotonic()
    phases = PHASES if size.whole else ("sync",)
    chosen = list(FAULTS) if size.name != "smallest" else list(FAULTS)[:1]
    found: dict[str, dict[str, Any]] = {fault: {} for fault in chosen}
    for fault in chosen:
        for phase in phases:
            over = time.monotonic() - begun > _MINUTES * 60
            cell = (
                {"failed": False, "reason": f"left out: {_MINUTES} minutes were over"} if over else _cell(fault, phase)
            )
            found[fault][phase] = cell
            print(f"  {fault}, {phase}: {cell.get('reason', 'equal, once')}", file=sys.stderr, flush=True)
    wrong = [f"{fault}, {phase}" for fault in found for phase, cell in found[fault].items() if cell["failed"]]
    return {"phases": list(phases), "faults": found, "wrong": wrong}


def _cell(fault: str, phase: str) -> dict[str, Any]:
    begun = time.monotonic()
    try:
        with _prepared(fault) as cell:
            changes = _run(cell, phase, FAULTS[fault])
            stopped = cell.stopped
    except NotInThisPhaseError as reason:
        return {"failed": False, "reason": f"left out: {reason}"}
    except Exception as error:  # noqa: BLE001 - the other cells go on, and the report tells this one's error
        return {"failed": True, "reason": f"{type(error).__name__}: {error}"}
    seconds = round(time.monotonic() - begun, 1)
    return {"failed": False, "changes": changes, "seconds": seconds, "stopped": stopped}


@contextmanager
def _prepared(fault: str) -> Iterator[Cell]:
    with (
        tempfile.TemporaryDirectory(prefix="unshard-report-") as name,
        MariadbServer() as source,
        MariadbServer() as target,
        FaultProxy("127.0.0.1", source.port) as upstream,
        FaultProxy("127.0.0.1", target.port) as downstream,
        ExitStack() as stack,
    ):
        disk = Path(name) / "disk"
        disk.mkdir()
        if fault == "the disk is full":
            _mount(disk)
            stack.callback(subprocess.run, ["umount", "--lazy", str(disk)], check=False)
        work = Workload(source, WorkPlan("fault", threads=1, large_rows=60))
        work.create()
        work.fill(_FILLED_ROWS)
        task = TaskFolder(Path(name), disk, "faults", source, target, upstream.port, downstream.port, "fault_1")
        cell = Cell(source, target, upstream, downstream, task, work)
        stack.callback(cell.end)
        stack.callback(cell.release)
        yield cell


def _run(cell: Cell, phase: str, fault: Callable[[Cell], None]) -> int:
    """Bring the task to that phase, let the fault happen, and judge. Returns the number of changes in the log."""
    _into[phase](cell)
    fault(cell)
    cell.catch_up()
    cell.work.run(transactions=_TRANSACTIONS)
    cell.catch_up()
    if (code := cell.command.interrupt()) != 0:
        raise WrongError(f"the task ended with {code}: {cell.command.last_line}")
    names = cell.work.plan.names
    for name in names:
        compared = compare([(cell.source, name)], (cell.target, name))
        if not compared.equal:
            raise WrongError(f"{name}: {compared}")
    log = list(row_log(cell.source, names))
    # a dump that begins anew has rows that were changed meanwhile
    copied = bool(cell.stopped) and phase == "dump"
    if against := not_once(log, cell.target, names, copied=copied):
        raise WrongError(f"not once: {against[0]}")
    return len(log)


def _into_dump(cell: Cell) -> None:
    cell.lock(cell.source, f"LOCK TABLES {cell.table} WRITE")
    cell.start()
    cell.wait(lambda: stands_still(cell.source), "in the dump")


def _into_load(cell: Cell) -> None:
    ((_, create),) = cell.source.query(f"SHOW CREATE TABLE {cell.table}")
    schema = cell.work.plan.names[0].schema
    cell.target.run(f"CREATE DATABASE {schema}", f"USE {schema}", create)
    cell.lock(cell.target, f"INSERT INTO {cell.table} (id) VALUES (1)")
    cell.start()
    cell.wait(lambda: stands_still(cell.target), "in the load")


def _into_sync(cell: Cell) -> None:
    cell.start()
    cell.catch_up()
    cell.work.run(transactions=_TRANSACTIONS)
    cell.catch_up()
    cell.lock(cell.target, f"SELECT * FROM {cell.table} FOR UPDATE")
    cell.source.run(f"UPDATE {cell.table} SET k = k + 1")
    cell.wait(lambda: stands_still(cell.target), "in the middle of a batch")


def _into_ddl(cell: Cell) -> None:
    cell.start()
    cell.catch_up()
    cell.lock(cell.target, f"SELECT * FROM {cell.table} LIMIT 1")
    cell.source.run(f"ALTER TABLE {cell.table} ADD COLUMN later INT, ADD KEY (later)")
    cell.wait(lambda: stands_still(cell.target), "in the middle of a DDL")


_into: dict[str, Callable[[Cell], None]] = {
    "dump": _into_dump,
    "load": _into_load,
    "sync": _into_sync,
    "DDL": _into_ddl,
}


def _restart(server: MariadbServer, cell: Cell) -> None:
    server.kill()
    cell.release()
    time.sleep(1.0)
    server.start()


def _mount(disk: Path) -> None:
    """Mount a small file system. Only a process with its own view of mounts does so."""
    if not os.environ.get("UNSHARD_OWN_MOUNTS"):
        raise NotInThisPhaseError("a small file system can be mounted by root only")
    command = ["mount", "-t", "tmpfs", "-o", f"size={_DISK_BYTES}", "unshard", str(disk)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise NotInThisPhaseError(done.stderr.strip())


def _close(connection: Any) -> None:
    """Close a connection, whose server may have ended."""
    with suppress(Exception):
        connection.close()
