"""A run goes on where its lines can't be written: the disk is full, the reader or the terminal has gone."""

from __future__ import annotations

import json
import os
import pty
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path
from threading import Event

import pytest
from rich.console import Console

from support.task_runs import Command, TaskFiles, newest
from support.waiting import wait_until
from unshard.cli.display import show
from unshard.cli.json_status import JsonStatus
from unshard.cli.output import output_to
from unshard.cli.printer import Printer
from unshard.testing.mariadb_server import MariadbServer
from unshard.worker.status import SubtaskStatus

COPYING = SubtaskStatus("s1", "dump", 4.0)
FULL = "exec >/dev/full 2>&1"


@contextmanager
def vanished_terminal() -> Iterator[int]:
    """A terminal that was closed at the other end: it refuses what is written with EIO."""
    ours, theirs = pty.openpty()
    os.close(ours)
    yield theirs
    os.close(theirs)


@contextmanager
def unread_pipe() -> Iterator[int]:
    ours, theirs = os.pipe()
    os.close(ours)
    yield theirs
    os.close(theirs)


@contextmanager
def full_disk() -> Iterator[int]:
    with Path("/dev/full").open("wb") as full:
        yield full.fileno()


@pytest.mark.parametrize("place", [vanished_terminal, unread_pipe, full_disk])
@pytest.mark.parametrize("terminal", [False, True])
def test_lines_and_bars_that_can_not_be_written_are_dropped(place: type, terminal: bool) -> None:
    with place() as number, open(number, "w", closefd=False, encoding="utf-8") as stream:
        with output_to(stream) as output:
            ended, looks = Event(), iter(range(3))
            printer = Printer(Console(file=output, force_terminal=terminal))

            def readings() -> list[SubtaskStatus]:
                if next(looks) == 2:
                    ended.set()
                return [COPYING]

            printer.tell("x" * 20_000)
            show(printer, readings, ended)
            with JsonStatus(output, "app").over(Event()):
                pass
        stream.flush()


def test_a_full_disk_that_has_room_again_gets_whole_lines() -> None:
    read, write = os.pipe()
    full = os.open("/dev/full", os.O_WRONLY)
    with closing(os.fdopen(read)) as reader, open(os.dup(full), "w", encoding="utf-8") as stream:
        with output_to(stream) as output:
            printer = Printer(Console(file=output))
        for number in range(1000):
            printer.tell(f"line {number} of a full disk")
        os.dup2(write, stream.fileno())
        os.close(write)
        printer.tell("the last line")
        os.dup2(full, stream.fileno())
        os.close(full)
        found = reader.read().splitlines()
    assert found[-1].endswith(" INFO  the last line")
    assert all(line.endswith(" of a full disk") for line in found[:-1])


def test_a_command_without_streams_has_no_output() -> None:
    with output_to(None) as output:
        Printer(Console(file=output)).tell("a line")


@pytest.mark.parametrize("streams", ["2>/dev/full", ">/dev/full 2>&1", ">&- 2>&-"])
def test_an_error_that_can_not_be_told_ends_with_1(streams: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", "unshard", "run", "none.yaml", "-s", "none.yaml"]
    done = subprocess.run(["/bin/sh", "-c", f'exec "$0" "$@" {streams}', *command], cwd=tmp_path, check=False)
    assert done.returncode == 1


@pytest.mark.server
@pytest.mark.parametrize("flags", [(), ("--json-status",)])
@pytest.mark.parametrize("gone", [False, True])
@pytest.mark.faults
def test_a_run_goes_on_and_its_log_says_once_that_nobody_sees_its_lines(
    flags: tuple[str, ...],
    gone: bool,
    source_server: MariadbServer,
    target_server: MariadbServer,
    schema: str,
    tmp_path: Path,
) -> None:
    fifo = tmp_path / "pipe"
    os.mkfifo(fifo)
    reader = os.open(fifo, os.O_RDONLY | os.O_NONBLOCK)
    os.set_blocking(reader, True)
    for server in (source_server, target_server):
        server.run(f"CREATE DATABASE {schema}", f"CREATE TABLE {schema}.t (id INT PRIMARY KEY)")
    at = newest(source_server)
    files = TaskFiles(
        tmp_path,
        schema,
        {"s1": source_server},
        target_server,
        (schema,),
        keys={"task-mode": "incremental"},
        instance={"meta": {"binlog-name": at.file, "binlog-pos": at.offset}},
    ).write()
    with Command(files, "", f"exec >{fifo} 2>&1; echo begins" if gone else FULL, *flags) as command:
        if gone:
            wait_until(lambda: os.read(reader, 100) != b"", "it writes into the pipe")
        os.close(reader)
        source_server.run(f"INSERT INTO {schema}.t VALUES (1)")
        command.catch_up()
        command.interrupt()
        assert command.wait() == 0
    assert target_server.query(f"SELECT id FROM {schema}.t") == [(1,)]
    said = [line for line in map(json.loads, command.log.read_text().splitlines()) if "output" in line.get("event", "")]
    assert [one["stream"] for one in said] == (["stdout", "stderr"] if flags else ["stdout"])
