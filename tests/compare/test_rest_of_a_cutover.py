"""A source rests for a cut-over though its binlog moves, as long as nothing of the task's is in there."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.comparisons import merged_into_one
from support.cutovers import cut_over
from support.task_runs import TaskFiles, newest
from unshard.compare.places import SourceWatch
from unshard.errors import CompareError
from unshard.testing.throwaway_server import ThrowawayServer

pytestmark = pytest.mark.server


@pytest.fixture
def files(
    source_server: ThrowawayServer,
    target_server: ThrowawayServer,
    schema: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[TaskFiles]:
    """A task that is always at the end of its source, and a schema that it does not take."""
    monkeypatch.setattr(SourceWatch, "applied", SourceWatch.newest)
    beside = f"{schema}_beside"
    source_server.run(f"CREATE DATABASE {beside}", f"CREATE TABLE {beside}.heartbeat (id INT PRIMARY KEY, at INT)")
    made = ("CREATE TABLE t_1 (id INT PRIMARY KEY, v INT)", "INSERT INTO t_1 VALUES (1, 1)")
    with merged_into_one(source_server, target_server, schema, tmp_path, *made) as files:
        yield files
    source_server.run(f"DROP DATABASE {beside}")


def heartbeats(schema: str) -> tuple[str, ...]:
    return f"REPLACE INTO {schema}_beside.heartbeat VALUES (1, 2)", "FLUSH BINARY LOGS"


def test_a_source_with_new_files_and_foreign_rows_rests(files: TaskFiles, schema: str) -> None:
    source = files.sources["s1"]
    seen: list[bool] = []

    def compare(ranges: Path) -> None:
        seen.append(ranges.exists())
        ranges.write_text("what was compared\n")
        source.run(*heartbeats(schema))

    for _ in range(2):
        proof = cut_over(files, compare)
        assert proof is not None
        assert proof.ends["s1"].position == str(newest(source))
    assert seen == [False, True], "the second one goes on, for nothing of the task's was written"


def test_a_write_among_them_is_told(files: TaskFiles, schema: str) -> None:
    source = files.sources["s1"]

    def compare(ranges: Path) -> None:
        ranges.write_text("what was compared\n")
        source.run(*heartbeats(schema), f"UPDATE {schema}.t_1 SET v = v + 1", *heartbeats(schema))

    with pytest.raises(CompareError, match="COMPARE-015"):
        cut_over(files, compare)
    seen: list[bool] = []
    assert cut_over(files, lambda ranges: seen.append(ranges.exists())) is not None
    assert seen == [False]
