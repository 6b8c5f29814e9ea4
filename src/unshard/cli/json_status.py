"""The status of a running task as lines of JSON on stdout, of which the last one has the outcome of the run.

The fields are documented in docs/how-to/read-the-status-line.md. A field keeps its name and its meaning for as long as
`version` stays; fields may be added.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from threading import Event
from typing import Any, Literal, TextIO

from unshard.cli.printer import utc_now, utc_text
from unshard.cli.process import BROKEN_OFF, FAILED
from unshard.errors import UnshardError
from unshard.worker.status import SubtaskStatus, WaitingSubtask

VERSION = 1
EVERY_SECONDS = 1.0
State = Literal["starting", "running", "stopping", "finished", "stopped", "failed"]


@dataclass(slots=True)
class JsonStatus:
    """The writer of the status lines of one run of `task`. `redact`: only the code of an error is written.

    `sources` is the last known status, which the last line repeats.
    """

    stream: TextIO
    task: str
    redact: bool = False
    sources: Sequence[SubtaskStatus] = ()
    _due: float = 0.0

    def look(self, stop: Event, sources: Sequence[SubtaskStatus]) -> None:
        """Write a line where the last one is a second old. `stop` is set when the run was asked to end."""
        self.sources = sources
        if time.monotonic() >= self._due:
            self._due = time.monotonic() + EVERY_SECONDS
            self._write("stopping" if stop.is_set() else "running")

    @contextmanager
    def over(self, stop: Event) -> Iterator[None]:
        """Write a first line at once, and a last one with the outcome of the run."""
        self._write("starting")
        try:
            yield
        except BaseException as error:
            self._write("failed", self._error(error), BROKEN_OFF if isinstance(error, KeyboardInterrupt) else FAILED)
            raise
        self._write("stopped" if stop.is_set() else "finished", exit_code=0)

    def _error(self, error: BaseException) -> dict[str, str]:
        if not isinstance(error, UnshardError):
            return {"code": "", "message": type(error).__name__}
        return {"code": error.code, "message": "" if self.redact else str(error)}

    def _write(self, state: State, error: dict[str, str] | None = None, exit_code: int | None = None) -> None:
        form = {
            "version": VERSION,
            "time": utc_text(utc_now()),
            "task": self.task,
            "state": state,
            "exit_code": exit_code,
            "error": error,
            "sources": [source_form(one) for one in self.sources],
        }
        self.stream.write(json.dumps(form) + "\n")
        self.stream.flush()


def source_form(reading: SubtaskStatus) -> dict[str, Any]:
    """Return one source's fields. All are always present; those that don't apply to the current unit are null."""
    progress, sync, waits = reading.progress, reading.sync, reading.waits
    location = sync.location if sync is not None else None
    return {
        "source": reading.source,
        "unit": reading.unit,
        "unit_seconds": round(reading.unit_seconds, 1),
        "copy_rows": progress.rows_done if progress else None,
        "copy_rows_estimate": progress.rows_total_estimate if progress else None,
        "copy_bytes": progress.bytes_done if progress else None,
        "copy_tables": progress.tables_done if progress else None,
        "copy_tables_total": progress.tables_total if progress else None,
        "lag_seconds": sync.lag_seconds if sync else None,
        "backlog_bytes": reading.backlog_bytes,
        "binlog_file": location.position.file if location else None,
        "binlog_position": location.position.offset if location else None,
        "gtid": location.gtid if location else None,
        "rows": sync.rows if sync else None,
        "rows_per_second": round(sync.rows_per_second, 1) if sync else None,
        "batches": sync.batches if sync else None,
        "rows_missing": sync.missing if sync else None,
        "rows_filtered": sum(entry.filtered for entry in sync.tables.values()) if sync else None,
        "safe_mode": sync.safe_mode or None if sync else None,
        "ddl_waits": [{"table": one.target, "for": one.waits_for} for one in sync.groups] if sync else None,
        "note": reading.note or None,
        "paused": _paused(waits) if waits else None,
    }


def _paused(waits: WaitingSubtask) -> dict[str, str]:
    return {"error": waits.error, "since": utc_text(waits.since), "next_try": utc_text(waits.until)}
