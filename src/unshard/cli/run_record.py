"""The file beside a run's log that says which run it is, when it ended and why; `unshard ctl` tells it."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from unshard.ctl.runs import RunRecord, is_alive, named_in, record_in, write_record
from unshard.errors import UnshardError


@dataclass(slots=True)
class RunFile:
    """The record of a run that lives. `redact`: values of rows may not be told."""

    file: Path
    record: RunRecord
    redact: bool

    def at(self, address: str) -> None:
        """The run's API is there from now on."""
        self._write(replace(self.record, address=address))

    def over(self, outcome: str) -> None:
        """The run has ended."""
        self._write(replace(self.record, ended=_now(), outcome=outcome))

    def failed(self, error: BaseException) -> None:
        """The run was ended by that."""
        told = type(error).__name__
        if isinstance(error, UnshardError):
            told = error.code if self.redact else str(error)
        self.over(f"it was ended by {told}")

    def _write(self, record: RunRecord) -> None:
        self.record = record
        write_record(self.file, record)


@contextmanager
def recorded(file: Path, task: str, *, redact: bool) -> Iterator[RunFile]:
    """Keep the record while the run lives, and behind its end. One beside it, where the file is of another that lives.

    A failure that comes up through here is its end's reason.
    """
    before = record_in(file)
    if before is not None and not before.ended and is_alive(before.address):
        file = file.with_stem(f"{file.stem}.{os.getpid()}")
    run = RunFile(file, RunRecord(task, _now()), redact)
    write_record(file, run.record)
    try:
        yield run
    except BaseException as error:
        run.failed(error)
        raise


def _now() -> str:
    return f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC"


# The file beside a run's log that says where its API is: `unshard ctl` in that folder finds the run by it.


@contextmanager
def address_in(file: Path, address: str) -> Iterator[None]:
    """Name `address` (HOST:PORT) in the file for as long; where another run is named there that lives, in one beside it
    with the port in its name."""
    if is_alive(named_in(file)):
        file = file.with_stem(f"{file.stem}.{address.rpartition(':')[2]}")
    file.write_text(f"{address}\n", encoding="utf-8")
    try:
        yield
    finally:
        if named_in(file) == address:
            file.unlink()
