"""The files that `unshard run` writes beside its log, by which `unshard ctl` finds it.

One says which run it is, when it ended and why. The other has the address of its API, for a `unshard ctl` that is
called in the same folder.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from unshard.ctl.runs import RECORD_SUFFIX, RunRecord, is_alive, named_in, record_in, write_record
from unshard.errors import UnshardError


@dataclass(slots=True)
class RunFile:
    """The file that records a run in progress. `redact`: values of rows must not be written."""

    file: Path
    record: RunRecord
    redact: bool

    def at(self, address: str) -> None:
        """Record the address of the run's API."""
        self._write(replace(self.record, address=address))

    def over(self, outcome: str) -> None:
        """Record that the run has ended."""
        self._write(replace(self.record, ended=_now(), outcome=outcome))

    def failed(self, error: BaseException) -> None:
        """Record that the error ended the run."""
        told = type(error).__name__
        if isinstance(error, UnshardError):
            told = error.code if self.redact else str(error)
        self.over(f"it was ended by {told}")

    def _write(self, record: RunRecord) -> None:
        self.record = record
        write_record(self.file, record)


@contextmanager
def recorded(log: Path, task: str, *, redact: bool) -> Iterator[RunFile]:
    """Keep the record beside the run's log while the run lives, and after its end.

    It gets another name where the record of that name is of a run that lives. A failure that comes up through here is
    its end's reason.
    """
    file = log.with_suffix(RECORD_SUFFIX)
    before = record_in(file)
    if before is not None and not before.ended and is_alive(before.address):
        file = file.with_stem(f"{file.stem}.{os.getpid()}")
    run = RunFile(file, RunRecord(task, _now(), log=log.name), redact)
    write_record(file, run.record)
    try:
        yield run
    except BaseException as error:
        run.failed(error)
        raise


def _now() -> str:
    return f"{datetime.now(UTC):%Y-%m-%d %H:%M:%S} UTC"


@contextmanager
def address_in(file: Path, address: str) -> Iterator[None]:
    """Write `address` (HOST:PORT) to the file, and remove the file at the end.

    Where the file names another run that is alive, a file beside it is used, with the port in its name.
    """
    if is_alive(named_in(file)):
        file = file.with_stem(f"{file.stem}.{address.rpartition(':')[2]}")
    file.write_text(f"{address}\n", encoding="utf-8")
    try:
        yield
    finally:
        if named_in(file) == address:
            file.unlink()
