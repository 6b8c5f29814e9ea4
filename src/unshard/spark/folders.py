"""Finds out whether executors see the folders of this machine, by a job with as many tasks as run at a time.

The executors of a local session always do.
"""

from __future__ import annotations

import os
import secrets
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from pathlib import Path
from weakref import WeakKeyDictionary

import pyarrow as pa

from unshard.errors import EngineError, Where
from unshard.run_tasks import RunTasks
from unshard.spark.address import local_slots
from unshard.spark.jobs import failure, setting
from unshard.spark.lazy import LazySession
from unshard.spark.session import Session, slots

_seen: WeakKeyDictionary[Session, dict[Path, bool]] = WeakKeyDictionary()


def sees(session: Session, folder: Path) -> bool:
    """Return whether the executors can read what is written to `folder` here.

    Checked once for each session and folder.
    """
    known = _seen.setdefault(session, {})
    if folder not in known:
        known[folder] = _is_local(session) or _exchange(session, folder, answered=False)
    return known[folder]


def writing(run: RunTasks, session: LazySession, folder: Path, source: str) -> RunTasks:
    """Return `run` for tasks that write files into `folder`.

    It raises EngineError ENGINE-008 if the files would not be seen here.
    """
    return _behind(lambda: _exchange(session.get(), folder, answered=True), run, session, folder, source)


def reading(run: RunTasks, session: LazySession, folder: Path, source: str) -> RunTasks:
    """Return `run` for tasks that read files in `folder`.

    It raises EngineError ENGINE-008 if they don't see the same files.
    """

    def same() -> bool:
        here = _listing(folder)
        return _all(session.get(), lambda number: _listing(folder) == here)

    return _behind(same, run, session, folder, source)


def _behind(check: Callable[[], bool], run: RunTasks, session: LazySession, folder: Path, source: str) -> RunTasks:
    looked = session.local

    def checked(payloads: Sequence[bytes], task: Callable[[bytes], bytes], *, barrier: bool = False) -> list[bytes]:
        nonlocal looked
        if not looked and not check():
            raise EngineError("ENGINE-008", Where(source=source, file=str(folder)))
        looked = True
        return run(payloads, task, barrier=barrier)

    return checked


def _is_local(session: Session) -> bool:
    return bool(local_slots(setting(session, "spark.master")))


def _listing(folder: Path) -> list[tuple[str, int]]:
    """Return the names and sizes of the files; empty if there is no such folder.

    Runs on the driver and on executors.
    """
    with suppress(OSError), os.scandir(folder) as entries:
        return sorted((entry.name, entry.stat().st_size) for entry in entries if entry.is_file())
    return []


def _exchange(session: Session, folder: Path, *, answered: bool) -> bool:
    """Return whether every task can read a file that is written here.

    With `answered`, each task also writes a file, which must then be seen here.
    """
    folder.mkdir(parents=True, exist_ok=True)
    word = secrets.token_hex(16)
    mark = folder / f".unshard-seen-{word[:8]}"
    answers = [mark.with_name(f"{mark.name}-{number}") for number in range(slots(session))]

    def look(number: int) -> bool:
        try:
            found = mark.read_text() == word
            if found and answered:
                answers[number].write_text(word)
        except OSError:
            return False
        return found

    mark.write_text(word)
    try:
        return _all(session, look) and not (answered and any(not path.exists() for path in answers))
    finally:
        for path in (mark, *answers):
            with suppress(OSError):
                path.unlink(missing_ok=True)


def _all(session: Session, look: Callable[[int], bool]) -> bool:
    """Return whether `look` is true in every task."""

    def body(batches: Iterator[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
        for batch in batches:
            answers = [look(number) for number in batch.column(0).to_pylist()]
            yield pa.RecordBatch.from_arrays([pa.array(answers, pa.bool_())], ["found"])

    count = slots(session)
    try:
        found = session.range(0, count, 1, count).mapInArrow(body, "found boolean").toArrow()
    except Exception as error:
        raise failure(session, "look for a folder", error) from error
    return all(found.column("found").to_pylist())
