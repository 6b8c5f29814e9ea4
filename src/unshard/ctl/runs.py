"""Finds the `unshard run` processes of the current folder by the files beside their logs.

One file of a run says where its API is. The other says which run it is and, once it is over, when it ended and why.
"""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Collection
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path

from unshard.errors import ClusterError

SUFFIX = ".addr"
RECORD_SUFFIX = ".run"
_LOOPBACK = re.compile(r"(127(\.\d{1,3}){3}|localhost|\[::1\]):\d+")
_LONGEST = 256
"""Characters of such a file, with room to spare."""
_CONNECT_SECONDS = 2.0
_LAST_PORT = 65535


@dataclass(frozen=True, slots=True)
class RunRecord:
    """The record of a run: its task, its begin, the address of its API, its end and the reason for the end.

    A value that isn't known yet is "". `log` is the name of the run's log, which is in the folder of the record; "" in
    a record of an earlier version.
    """

    task: str
    began: str
    address: str = ""
    ended: str = ""
    outcome: str = ""
    log: str = ""


def write_record(file: Path, record: RunRecord) -> None:
    """Put it in the place of the one before, for its user alone. A full disk leaves the one before."""
    written = file.with_name(f"{file.name}.tmp")
    written.touch(mode=0o600)
    form = {
        "task": record.task,
        "began": record.began,
        "address": record.address,
        "ended": record.ended,
        "outcome": record.outcome,
        "log": record.log,
    }
    written.write_text(json.dumps(form, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
    written.rename(file)


def record_in(file: Path) -> RunRecord | None:
    """Return the record in a file; None where there is no readable one."""
    try:
        form = json.loads(file.read_text(encoding="utf-8"))
        names = ("task", "began", "address", "ended", "outcome")
        log = Path(str(form["log"])).name if "log" in form else ""
        return replace(RunRecord(*(str(form[name]) for name in names)), log=log)
    except (OSError, ValueError, TypeError, KeyError):
        return None


def runs_that_ended(masters: Collection[str]) -> list[str]:
    """Return, in words, what is known of this folder's runs that have ended; with `masters`, only of theirs."""
    told = []
    for file in sorted(Path().glob(f"*{RECORD_SUFFIX}")):
        record = record_in(file)
        if record is None or (masters and record.address not in masters):
            continue
        if not record.ended and is_alive(record.address):
            continue
        log = file.with_name(record.log) if record.log else file.with_suffix(".log")
        if record.ended:
            end = f"and ended at {record.ended}: {record.outcome}"
        else:
            seen = f"; the last line of its log is of {_changed(log)}" if log.is_file() else ""
            end = f"and was killed, or its machine went down{seen}"
        told.append(f"the run of task {record.task} began at {record.began} {end} (log: {log})")
    return told


def _changed(file: Path) -> str:
    return f"{datetime.fromtimestamp(file.stat().st_mtime, UTC):%Y-%m-%d %H:%M:%S} UTC"


def run_here() -> tuple[str, ...]:
    """Return the address of the run to ask.

    Of several files it is the one whose run is alive, for a killed run leaves its file. () where no run has left a
    file; all addresses where no run is alive. Raises ClusterError CLUSTER-047 where several are alive: the user has to
    choose one.
    """
    known = runs_here()
    if len(known) < 2:
        return tuple(known.values())
    living = {name: address for name, address in known.items() if is_alive(address)}
    if len(living) > 1:
        told = ", ".join(f"{address} ({name})" for name, address in living.items())
        raise ClusterError("CLUSTER-047", cause=f"several runs are in this folder; say which by --master-addr: {told}")
    return tuple((living or known).values())


def runs_here() -> dict[str, str]:
    """Return the addresses that runs have left in this folder, alive or not, by the names of the files.

    Only loopback addresses are returned: whoever may write to a folder should not get the tokens of those who work in
    it.
    """
    found = {file.name: named_in(file) for file in sorted(Path().glob(f"*{SUFFIX}"))}
    return {name: address for name, address in found.items() if _LOOPBACK.fullmatch(address)}


def named_in(file: Path) -> str:
    """Return the address in a file; "" where there is no such file, or a run did not write it."""
    if not file.is_file():
        return ""
    try:
        with file.open(encoding="utf-8") as text:
            return text.read(_LONGEST).strip()
    except (OSError, UnicodeDecodeError):
        return ""


def is_alive(address: str) -> bool:
    """Return whether a process listens at an address of a run.

    A busy or frozen process counts; a killed one's port refuses.
    """
    if not _LOOPBACK.fullmatch(address):
        return False
    host, _, port = address.rpartition(":")
    if int(port) > _LAST_PORT:  # the system would take it for another one
        return False
    try:
        socket.create_connection((host.strip("[]"), int(port)), _CONNECT_SECONDS).close()
    except TimeoutError:
        return True
    except OSError:
        return False
    return True
