"""A comparison that goes on from its file vouches only for ranges that are still as they were compared."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from support.comparisons import compared, compared_and_told, only_table, state_file
from support.death_by_error import die_by_error
from support.task_runs import TaskFiles
from support.waiting import wait_until
from unshard.compare.report import text_lines
from unshard.compare.result import CompareVerdict, ComparisonOutcome
from unshard.errors import EngineError
from unshard.load.checkpoint import LoadTables
from unshard.target.forget import forget_task
from unshard.testing.throwaway_server import ThrowawayServer

pytestmark = pytest.mark.server

RESUMED = "going on behind"


@pytest.fixture
def broken_off(files: TaskFiles, schema: str, tmp_path: Path) -> Path:
    """The file of a comparison of 100 equal rows that ended after its first range of 10."""
    for server in (files.sources["s1"], files.target):
        server.run(
            f"CREATE TABLE {schema}.t (id INT PRIMARY KEY, v INT)",
            f"INSERT INTO {schema}.t SELECT 10 * a.n + b.n, 0 FROM ({numbers()}) a JOIN ({numbers()}) b",
        )
    return break_off(files, state_file(tmp_path))


def numbers() -> str:
    return " UNION ALL ".join(f"SELECT {n} AS n" for n in range(10))


def break_off(files: TaskFiles, state: Path) -> Path:
    with pytest.MonkeyPatch.context() as patch:
        die_by_error(patch, "compare-range-after")
        with pytest.raises(EngineError):
            compared(files, None, chunk_rows=10, state=state)
    assert len(state.read_text().splitlines()) == 2
    return state


def resumed(files: TaskFiles, state: Path) -> tuple[ComparisonOutcome, str]:
    """The outcome of the same comparison, and what it told."""
    told: list[str] = []
    found = compared_and_told(files, None, told.append, chunk_rows=10, state=state)
    assert not state.exists()
    return found, "\n".join(told)


def test_ends_that_rest_are_compared_from_there_on(files: TaskFiles, broken_off: Path) -> None:
    found, told = resumed(files, broken_off)
    assert RESUMED in told
    assert found.verdict is CompareVerdict.EQUAL
    assert all(place.to_dict()["begin"] for place in found.places)


def empty(server: ThrowawayServer, schema: str) -> None:
    server.run(f"TRUNCATE TABLE {schema}.t")


def take_three(server: ThrowawayServer, schema: str) -> None:
    server.run(f"DELETE FROM {schema}.t WHERE id IN (2, 5, 6)")


def restore_another(server: ThrowawayServer, schema: str) -> None:
    """The creation time has whole seconds."""
    made = f"SELECT CREATE_TIME < NOW() FROM information_schema.TABLES WHERE TABLE_SCHEMA = '{schema}'"
    wait_until(lambda: server.query(made) == [(1,)], "the next second")
    server.run(
        f"CREATE TABLE {schema}.other LIKE {schema}.t",
        f"INSERT INTO {schema}.other SELECT id, IF(id = 3, 7, v) FROM {schema}.t",
        f"DROP TABLE {schema}.t",
        f"RENAME TABLE {schema}.other TO {schema}.t",
    )


@pytest.mark.parametrize(("change", "rows"), [(empty, 100), (take_three, 3), (restore_another, 1)])
def test_a_table_of_the_target_that_is_another_one_now_is_compared_from_its_begin(
    files: TaskFiles, schema: str, broken_off: Path, change: Callable[[ThrowawayServer, str], None], rows: int
) -> None:
    change(files.target, schema)
    found, told = resumed(files, broken_off)
    table = only_table(found)
    assert RESUMED not in told
    assert (found.verdict, table.classes.total()) == (CompareVerdict.DIFFERENT, rows)


def test_a_table_that_was_copied_anew_is_compared_from_its_begin(
    files: TaskFiles, schema: str, tmp_path: Path, broken_off: Path
) -> None:
    """The copy has as many rows, in the same table, which the load had emptied."""

    def copy(dump: str) -> None:
        with closing(files.target.connection()) as connection:
            forget_task(connection, files.meta, files.name)
            tables = LoadTables(files.meta, files.name, "s1")
            tables.create(connection)
            tables.take_over(connection, dump, [(f"{schema}.t.0.parquet", 1, "")])

    broken_off.unlink()
    copy("first")
    again = break_off(files, state_file(tmp_path))
    copy("second")
    files.target.run(f"UPDATE {schema}.t SET v = 7 WHERE id = 3")
    found, told = resumed(files, again)
    assert RESUMED not in told
    assert found.verdict is CompareVerdict.DIFFERENT


def test_the_report_tells_where_the_first_ranges_were_compared(files: TaskFiles, schema: str, broken_off: Path) -> None:
    files.sources["s1"].run(f"UPDATE {schema}.t SET v = 8 WHERE id = 3")
    found, told = resumed(files, broken_off)
    assert RESUMED in told
    (place,) = found.places
    assert place.begin != place.end
    text = "\n".join(text_lines(found))
    assert f"s1: read from {place.begin} to {place.end}" in text
    assert not place.to_dict()["exact"]
