"""Cut-overs of a task that merges a table of each of two sources into one."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path

from pyspark.sql import SparkSession

from support.numbers import numbers
from support.task_runs import TaskFiles
from unshard.cli.compare_subject import CompareWish, task_subject
from unshard.compare.counters import raise_target_counters
from unshard.compare.cutover import Cutover, CutoverProof, CutoverRecord, CutoverSettings
from unshard.compare.places import SourceWatch
from unshard.compare.result import ComparisonOutcome
from unshard.compare.run import CompareSettings
from unshard.config.files import load_files
from unshard.testing.throwaway_server import ThrowawayServer


@contextmanager
def merged_tables(
    servers: Sequence[ThrowawayServer], target: ThrowawayServer, schema: str, folder: Path
) -> Iterator[TaskFiles]:
    """A task of two sources, each with a table `t_<n>` of 100 rows, which are merged into `t`. Dropped at the end."""
    sources: Mapping[str, ThrowawayServer] = {f"s{number}": server for number, server in enumerate(servers, 1)}
    for number, server in enumerate(servers, 1):
        server.run(
            f"CREATE DATABASE {schema}",
            f"CREATE TABLE {schema}.t_{number} (id INT PRIMARY KEY, v INT)",
            f"INSERT INTO {schema}.t_{number} SELECT {number}000 + seq, seq FROM {numbers(1, 100)}",
        )
    route = {"schema-pattern": schema, "table-pattern": "t_*", "target-schema": schema, "target-table": "t"}
    files = TaskFiles(folder, f"task_{schema}", sources, target, (schema,))
    yield replace(files, keys={"routes": {"r": route}}, instance={"route-rules": ["r"]}).write()
    for server in servers:
        server.run("SET GLOBAL read_only = OFF", f"DROP DATABASE {schema}")
    target.run(f"DROP DATABASE IF EXISTS {schema}", f"DROP DATABASE IF EXISTS {files.meta}")


@dataclass(slots=True)
class Trial:
    """A cut-over of the task on the shared Spark session."""

    files: TaskFiles
    spark: SparkSession
    settings: CutoverSettings = field(default_factory=lambda: CutoverSettings(wait_seconds=60, rest_seconds=1))
    answer: bool = True
    asked: list[Sequence[str]] = field(default_factory=list)
    at_rest: Callable[[], None] = lambda: None
    before: Callable[[], None] = lambda: None
    after: Callable[[], None] = lambda: None
    stop: threading.Event = field(default_factory=threading.Event)

    @property
    def file(self) -> Path:
        return self.files.folder / "cutover.json"

    @property
    def watches(self) -> list[SourceWatch]:
        subject = task_subject(load_files(self.files.task_path, self.files.source_paths), CompareWish())
        return [SourceWatch(side, subject.target, subject.meta) for side in subject.sides]

    def record(self) -> CutoverRecord:
        return CutoverRecord.load(self.file, self.files.name, "here")

    def run(self) -> CutoverProof | None:
        subject = task_subject(load_files(self.files.task_path, self.files.source_paths), CompareWish())

        def compare(path: Path) -> ComparisonOutcome:
            self.before()
            settings = CompareSettings(patience_seconds=30, chunk_rows=20, state=path, rests=True)
            found = subject.compare(settings, self.spark, print, self.stop)
            self.after()
            return found

        def agreed(names: Sequence[str]) -> bool:
            self.asked.append(names)
            return self.answer

        def tell(line: str) -> None:
            if "step 3" in line:
                self.at_rest()

        def counters() -> Sequence[str]:
            return raise_target_counters(subject.plan())

        ends = (self.watches, self.settings, self.file, self.record())
        return Cutover(*ends, compare, counters, agreed, tell, self.stop.is_set).run()


def cut_over(
    files: TaskFiles,
    compare: Callable[[Path], None],
    tell: Callable[[str], None] = lambda line: None,
    *,
    read_only: bool = False,
) -> CutoverProof | None:
    """A cut-over without Spark, whose comparison does only what `compare` does; the file of its ranges stays."""
    subject = task_subject(load_files(files.task_path, files.source_paths), CompareWish())
    watches = [SourceWatch(side, subject.target, subject.meta) for side in subject.sides]

    def compared(ranges: Path) -> ComparisonOutcome:
        compare(ranges)
        return ComparisonOutcome(())

    settings = CutoverSettings(read_only, wait_seconds=60, rest_seconds=1)
    file = files.folder / f"unshard-cutover-{files.name}.state.json"
    target = f"{subject.target.host}:{subject.target.port}"
    record = CutoverRecord.load(file, files.name, target)
    ends = (watches, settings, file, record)
    return Cutover(*ends, compared, tuple, lambda names: True, tell, lambda: False).run()
