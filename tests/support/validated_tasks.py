"""Tasks whose rows are validated, and what the target has on record of that."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from threading import Lock
from typing import Any

from pyspark.sql import SparkSession

from support.task_runs import TaskFiles, TaskRun
from support.waiting import wait_until
from unshard.api.verbs import Validation
from unshard.config.files import load_source, load_task
from unshard.model.position import Position
from unshard.mysql.connection import Endpoint, session
from unshard.operate.subject import Subject
from unshard.operate.validation import answer_validation
from unshard.target.loaded_rows import FullLoadProgress, full_load_progress
from unshard.target.meta import MetaTables
from unshard.target.validation import load_state, load_table_statuses, pending_size
from unshard.target.validation_errors import ErrorState, RowError, load_errors
from unshard.testing.throwaway_server import ThrowawayServer
from unshard.validation.validator import Validator

QUICK = {"mode": "full", "validate-interval": "300ms", "check-interval": "100ms"}


def validated(
    folder: Path,
    schema: str,
    sources: Mapping[str, ThrowawayServer],
    target: ThrowawayServer,
    keys: Mapping[str, Any] | None = None,
    validator: Mapping[str, Any] = QUICK,
) -> TaskFiles:
    """The files of a task of mode `all` with a validator that looks often."""
    own = {"validators": {"v": dict(validator)}, **(keys or {})}
    instance = {"validator-config-name": "v", **({"route-rules": list(own["routes"])} if "routes" in own else {})}
    return TaskFiles(folder, f"task_{schema}", sources, target, (schema,), own, instance).write()


def validators_of(run: TaskRun) -> list[Validator]:
    """The validators of a run, one a source. Made before the run begins."""
    found = [subtask.validation for subtask in run.crew.subtasks]
    return [one.built for one in found if one is not None and one.built is not None]


class HeldLooks:
    """The validators of a run look at nothing within the context. Made before the run begins."""

    def __init__(self, run: TaskRun) -> None:
        self._lock = Lock()
        for validator in validators_of(run):
            validator.run = self._gated(validator.run)

    def _gated(self, run: Callable[..., list[bytes]]) -> Callable[..., list[bytes]]:
        def gated(payloads: Sequence[bytes], task: Callable[[bytes], bytes], *, barrier: bool = False) -> list[bytes]:
            with self._lock:
                return run(payloads, task, barrier=barrier)

        return gated

    def __enter__(self) -> None:
        self._lock.acquire()

    def __exit__(self, *failure: object) -> None:
        self._lock.release()


@dataclass
class ValidatedRun:
    """A task in threads of this process, with its records; its validator can be held."""

    run: TaskRun
    records: ValidationRecords
    held: HeldLooks

    def settle(self) -> None:
        """Wait until all that the sources have is applied and judged."""
        self.run.catch_up()
        self.records.settled()


@dataclass
class ValidatedShop:
    """The schema `name` of one source and one target. Statements are written with `{shop}` for it."""

    name: str
    source: ThrowawayServer
    target: ThrowawayServer
    folder: Path

    def change(self, *statements: str) -> None:
        """Run statements on the source."""
        self.source.run(*(one.format(shop=self.name) for one in statements))

    def spoil(self, *statements: str) -> None:
        """Run statements on the target."""
        self.target.run(*(one.format(shop=self.name) for one in statements))

    def files(self, keys: Mapping[str, Any] | None = None, validator: Mapping[str, Any] | None = None) -> TaskFiles:
        """The files of its task. `keys` are keys of the task, `validator` those of its validator."""
        return validated(self.folder, self.name, {"s1": self.source}, self.target, keys, {**QUICK, **(validator or {})})

    @contextmanager
    def validating(
        self, spark: SparkSession, files: TaskFiles | None = None, *spoilt: str, at_rest: bool = True
    ) -> Iterator[ValidatedRun]:
        """A run of the task. `at_rest`: from when all rows of the copy are judged.

        `spoilt` are statements that the target runs when it has the copy, before the validator looks at anything.
        """
        files = files or self.files()
        run = TaskRun(files, spark)
        one = ValidatedRun(run, ValidationRecords(files), HeldLooks(run))
        one.held.__enter__()  # before the validator begins
        with run:
            try:
                run.reach("sync")
                run.catch_up()
                one.records.begun()
                self.spoil(*spoilt)
            finally:
                one.held.__exit__()
            if at_rest:
                one.settle()
            yield one


class ValidationRecords:
    """What the target has on record of a task."""

    def __init__(self, files: TaskFiles) -> None:
        self.files = files
        self.meta = MetaTables(files.meta, files.name)
        self._endpoint = Endpoint("127.0.0.1", files.target.port, "root", "")

    def ask(self, question: Callable[[Any], Any]) -> Any:
        with session(self._endpoint, "target") as connection:
            return question(connection)

    def begun(self) -> None:
        """Wait until each source's validator is on record, with its tables."""
        for name in self.files.sources:
            wait_until(lambda name=name: self._of(name)[0] is not None, f"validator of {name}")  # type: ignore[misc]

    def errors(self, *states: ErrorState) -> list[RowError]:
        """All errors, or those in these states."""
        sources, wanted = list(self.files.sources), states or tuple(ErrorState)
        found: list[RowError] = self.ask(lambda c: load_errors(c, self.meta, sources, wanted))
        return found

    def new_errors(self, count: int) -> list[RowError]:
        """Wait until there are as many new errors; these."""
        wait_until(lambda: len(self.errors(ErrorState.NEW)) == count, f"{count} errors", told=self.told)
        return self.errors(ErrorState.NEW)

    @contextmanager
    def held(self) -> Iterator[None]:
        """The validator stands still meanwhile; the sync goes on."""
        with closing(self.files.target.connection()) as connection, connection.cursor() as cursor:
            cursor.execute(f"LOCK TABLES {self.meta.named('validator_checkpoint')} WRITE")
            yield
            cursor.execute("UNLOCK TABLES")

    def statuses(self, source: str = "s1") -> Any:
        return self.ask(lambda c: load_table_statuses(c, self.meta, source))

    def status(self) -> dict[str, Any]:
        """The answer of `validation status`, by the task's files."""
        return self._verb(Validation(op="status", task=self.files.name))

    def _verb(self, request: Validation) -> dict[str, Any]:
        sources = [load_source(path) for path in self.files.source_paths]
        subject = Subject.of_files(load_task(self.files.task_path), sources)
        return answer_validation([subject], request, "test")

    def cut_over_at(self, source: str, place: Position) -> None:
        """`validation update`: record where the source is to be cut over."""
        position = f"({place.file}, {place.offset})"
        request = Validation(op="update", task=self.files.name, sources=(source,), cutover_binlog_pos=position)
        assert self._verb(request)["result"]

    def cutover_status(self) -> str:
        """The `cutoverStatus` of the only source."""
        (validator,) = self.status()["validators"]
        return str(validator["cutoverStatus"])

    def settled(self) -> None:
        """Wait until all rows that have changed are judged: the validator stands at the end of the log."""
        for name in self.files.sources:
            wait_until(partial(self._is_settled, name), "all rows judged", told=self.told)

    def told(self) -> str:
        return "\n".join(str((self._of(name), self.statuses(name), self.errors())) for name in self.files.sources)

    def _of(self, name: str) -> Any:
        state = self.ask(lambda c: load_state(c, self.meta, name))
        return state, self.ask(lambda c: pending_size(c, self.meta, name)) if state is not None else None

    def loaded(self, source: str = "s1") -> FullLoadProgress:
        """How far the loaded rows are compared."""
        found: FullLoadProgress = self.ask(lambda c: full_load_progress(c, self.meta, source))
        return found

    def _is_compared(self, source: str) -> bool:
        keys = self.files.keys
        if keys.get("task-mode", "all") != "all" or keys["validators"]["v"].get("full-load-rows-per-second") == 0:
            return True
        state, _ = self._of(source)
        loaded = self.loaded(source)
        return state is not None and bool(state.listed) and loaded.tables_done == loaded.tables

    def _is_settled(self, name: str) -> bool:
        if not self.files.caught_up() or self.files.applied(name) is None or not self._is_compared(name):
            return False  # asked first: the last range commits with the keys that differ in it
        end = self.files.applied(name)
        state, size = self._of(name)
        return (
            state is not None
            and size.rows == 0
            and state.location is not None
            and end is not None
            and state.location.position >= end
        )
