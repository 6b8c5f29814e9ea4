"""A process is frozen, or its JVM dies, in the middle of a batch: it says so, and each change still arrives once."""

from __future__ import annotations

import os
import signal
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import MySQLdb
import psutil
import pytest

from support.exactly_once import assert_exactly_once
from support.task_runs import Command, TaskFiles, processes_below
from support.waiting import wait_until
from unshard.testing.hold import row_held, stands_still
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.workload import Workload

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.recovery, pytest.mark.faults]

MANY = 600
"""Rows of a table whose changes are too many for a batch in the driver's process: Spark runs it."""


def with_signal(command: Command, number: signal.Signals) -> None:
    """Send a signal to all of the command: its driver, its JVM, its Python workers."""
    os.killpg(command.pid, number)
    for child in processes_below(command.pid):
        with suppress(ProcessLookupError, psutil.NoSuchProcess):  # an idle worker may end just now
            if os.getpgid(child.pid) != command.pid:  # Spark's daemon leads a group of its own
                child.send_signal(number)


def test_without_auto_resume_a_killed_jvm_ends_the_run_and_the_next_goes_on(
    files: TaskFiles, work: Workload, source: MariadbServer, target: MariadbServer
) -> None:
    work.fill(MANY)
    name = work.plan.names[0]
    with Command(files, "", ":", "--no-auto-resume") as command:
        command.catch_up()
        with row_held(target, name.quoted):
            source.run(f"UPDATE {name.quoted} SET k = k + 1", f"DELETE FROM {name.quoted} WHERE id > 500")
            wait_until(lambda: stands_still(target), "in the middle of a batch")
            command.jvm.kill()
            assert command.wait() == 1, command.text
    assert "ENGINE-003 [source s1" in command.text, command.text
    assert "what to do: " in command.text
    assert "Traceback" not in command.text
    with Command(files) as command:
        command.catch_up()
        command.interrupt()
        assert command.wait() == 0, command.text
    assert_exactly_once(source, target, work.plan.names)


def test_a_killed_jvm_is_replaced(
    files: TaskFiles, work: Workload, source: MariadbServer, target: MariadbServer
) -> None:
    work.fill(MANY)
    name = work.plan.names[0]
    with Command(files) as command:
        command.catch_up()
        with row_held(target, name.quoted):
            source.run(f"UPDATE {name.quoted} SET k = k + 1", f"DELETE FROM {name.quoted} WHERE id > 500")
            wait_until(lambda: stands_still(target), "in the middle of a batch")
            command.jvm.kill()
            command.shows("s1  waits  since ")
            assert "ENGINE-003 [source s1" in command.text, command.text
        command.catch_up()
        command.interrupt()
        assert command.wait() == 0, command.text
    assert_exactly_once(source, target, work.plan.names)


@pytest.mark.parametrize("rows", [0, MANY])
def test_a_frozen_process_finds_its_source_taken_over(
    rows: int, files: TaskFiles, work: Workload, source: MariadbServer, target: MariadbServer, tmp_path: Path
) -> None:
    work.fill(rows)
    name = work.plan.names[0]
    elsewhere = replace(files, folder=tmp_path / "another-host").write()
    with Command(files) as zombie:
        zombie.catch_up()
        with row_held(target, name.quoted):
            source.run(f"UPDATE {name.quoted} SET k = k + 1")
            wait_until(lambda: stands_still(target), "in the middle of a batch")
            with_signal(zombie, signal.SIGSTOP)
        # nobody else has any transaction, but for who held the row
        for (number,) in target.query(_BY_ZOMBIE[target.product]):
            with suppress(MySQLdb.OperationalError):
                target.run(f"KILL {number}")
        with Command(elsewhere) as heir:
            heir.catch_up()
            with_signal(zombie, signal.SIGCONT)
            assert zombie.wait() == 1, zombie.text
            assert "SYNC-001 [source s1" in zombie.text, zombie.text
            work.run(transactions=20)
            heir.catch_up()
    assert_exactly_once(source, target, work.plan.names)


_BY_ZOMBIE = {
    "MariaDB": "SELECT ID FROM information_schema.INNODB_TRX"
    " JOIN information_schema.PROCESSLIST ON ID = TRX_MYSQL_THREAD_ID",
    "TiDB": "SELECT SESSION_ID FROM information_schema.TIDB_TRX",
}
