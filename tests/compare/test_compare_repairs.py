"""`unshard compare --repair`: rows of the target become what the sources hold, and no newer change is overwritten."""

from __future__ import annotations

import subprocess
import threading
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import MySQLdb
import pytest
from pyspark.sql import SparkSession

from support.comparisons import compared
from support.numbers import numbers
from support.source_servers import utf8mb4_schema
from support.task_runs import UNSHARD, TaskFiles, TaskRun
from support.waiting import wait_until
from unshard.cli.compare_subject import CompareWish, task_subject
from unshard.compare.repair_transaction import RepairTransaction
from unshard.compare.result import ComparisonOutcome, RowClass
from unshard.compare.run import CompareSettings
from unshard.config.files import load_files
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.throwaway_server import ThrowawayServer

pytestmark = [pytest.mark.server, pytest.mark.spark]

COLUMNS = (
    "(id BIGINT PRIMARY KEY, u INT UNIQUE, v VARCHAR(99), b VARBINARY(9), n DECIMAL(9,2), d TIMESTAMP NULL, f DOUBLE,"
    " e ENUM('a','b'), j JSON)"
)
BARE = "(a INT, v VARCHAR(20), f FLOAT, b VARBINARY(9), d DATETIME)"


@pytest.fixture
def files(
    source_server: MariadbServer, target_server: ThrowawayServer, schema: str, tmp_path: Path
) -> Iterator[TaskFiles]:
    """Shards `t_1` and `t_2` of one source, merged into `t`, and a table without a key."""
    source_server.run(
        utf8mb4_schema(schema),
        f"USE {schema}",
        *(f"CREATE TABLE t_{number} {COLUMNS}" for number in (1, 2)),
        *(
            f"INSERT INTO t_{number} SELECT {number}00 + seq, {number}00 + seq, CONCAT('v', seq), x'00ff', seq, NULL,"
            f" seq / 3, 'a', '{{\"k\": 1}}' FROM {numbers(1, 20)}"
            for number in (1, 2)
        ),
        f"CREATE TABLE bare {BARE}",
        "INSERT INTO bare VALUES (1, 'x', 0.1, x'00', NULL), (1, 'x', 0.1, x'00', NULL), (2, 'Y', 1.5, NULL, now())",
    )
    route = {"schema-pattern": schema, "table-pattern": "t_*", "target-schema": schema, "target-table": "t"}
    files = TaskFiles(tmp_path, f"task_{schema}", {"s1": source_server}, target_server, (schema,))
    yield replace(files, keys={"routes": {"r": route}}, instance={"route-rules": ["r"]}).write()
    source_server.run(f"DROP DATABASE {schema}")
    target_server.run(f"DROP DATABASE IF EXISTS {schema}", f"DROP DATABASE IF EXISTS {files.meta}")


def repaired(files: TaskFiles, spark: SparkSession, **settings: Any) -> tuple[ComparisonOutcome, ComparisonOutcome]:
    """Compare, and repair what differs: what was found before and after."""
    subject = task_subject(load_files(files.task_path, files.source_paths), CompareWish())
    wanted = replace(CompareSettings(patience_seconds=60.0), **settings)
    stop = threading.Event()
    found = subject.compare(wanted, spark, print, stop)
    return found, subject.repair(found, wanted, spark, print, stop)


def plant(files: TaskFiles) -> None:
    """Rows that are missing, extra and changed, in the merged table and in the one without a key."""
    (schema,) = files.schemas
    files.target.run(
        f"USE {schema}",
        "DELETE FROM t WHERE id IN (103, 207)",
        # they have the unique values of the missing rows
        "INSERT INTO t (id, u) VALUES (903, 103), (907, 207)",
        "UPDATE t SET v = NULL, n = -1 WHERE id = 104",
        "UPDATE t SET b = x'01', d = '2024-02-29 01:02:03' WHERE id = 105",
        "UPDATE t SET f = f + 1e-12, e = NULL, j = '{\"k\": 2}' WHERE id = 206",
        "DELETE FROM bare WHERE a = 1 LIMIT 1",
        "INSERT INTO bare VALUES (2, 'y', 1.5, NULL, NULL), (2, 'y', 1.5, NULL, NULL), (3, 'z', 0.1, x'27', NULL)",
    )


def counts(outcome: ComparisonOutcome) -> dict[str, dict[str, int]]:
    return {
        one.name.table: {kind.value: one.classes[kind] for kind in RowClass if one.classes[kind]}
        for one in outcome.tables
    }


PLANTED = {"t": {"missing": 2, "extra": 2, "changed": 3}, "bare": {"missing": 1, "extra": 2}}


def test_the_target_is_equal_afterwards(files: TaskFiles, spark: SparkSession) -> None:
    with TaskRun(files, spark) as run:
        run.catch_up()
        plant(files)
        before, after = repaired(files, spark)
        assert counts(before) == PLANTED
        assert (after.exit_code, counts(after)) == (0, {"t": {}, "bare": {}}), after.notes
        (schema,) = files.schemas
        assert f"{schema}.t: repaired 2 extra, 3 changed, 2 missing" in after.notes
        assert f"{schema}.bare: repaired 3 extra, 0 changed, 1 missing" in after.notes
        receipts = files.target.query(
            f"SELECT target, SUM(inserted), SUM(updated), SUM(deleted) FROM `{files.meta}`.`{files.name}_repair`"
            " GROUP BY target ORDER BY target"
        )
        assert [(name, *map(int, n)) for name, *n in receipts] == [
            (f"{schema}.bare", 1, 0, 3),
            (f"{schema}.t", 2, 3, 2),
        ]
        # the task goes on, on the repaired rows
        files.sources["s1"].run(f"DELETE FROM {schema}.t_1 WHERE id = 103", f"UPDATE {schema}.t_2 SET v = 'new'")
        run.catch_up()
    assert compared(files, spark).exit_code == 0


@pytest.mark.scenarios
def test_a_task_that_is_stopped_and_has_all(files: TaskFiles, spark: SparkSession) -> None:
    with TaskRun(files, spark) as run:
        run.catch_up()
    plant(files)
    before, after = repaired(files, spark)
    assert (counts(before), after.exit_code) == (PLANTED, 0), after.notes


@pytest.mark.scenarios
def test_a_task_that_is_stopped_and_has_not_all_is_left_alone(files: TaskFiles, spark: SparkSession) -> None:
    (schema,) = files.schemas
    with TaskRun(files, spark) as run:
        run.catch_up()
    plant(files)
    subject = task_subject(load_files(files.task_path, files.source_paths), CompareWish())
    settings, stop = CompareSettings(patience_seconds=60.0), threading.Event()
    found = subject.compare(settings, spark, print, stop)
    files.sources["s1"].run(f"UPDATE {schema}.t_1 SET v = 'later' WHERE id IN (103, 104)")
    after = subject.repair(found, replace(settings, patience_seconds=1.0), spark, print, stop)
    told = "\n".join(after.notes)
    assert "COMPARE-014" in told
    assert "s1: the target has not come to" in told
    assert files.target.query(f"SELECT v FROM {schema}.t WHERE id = 104") == [(None,)]
    with TaskRun(files, spark) as run:
        run.catch_up()
        assert repaired(files, spark)[1].exit_code == 0


@pytest.mark.scenarios
def test_writers_that_never_rest(files: TaskFiles, spark: SparkSession) -> None:
    """Also of the very rows that differ: each of their values is the source's last one at the end."""
    (schema,) = files.schemas
    source, ended = files.sources["s1"], threading.Event()

    def write() -> None:
        connection, number = source.connection(), 0
        with connection.cursor() as cursor:
            while not ended.wait(0.03):
                number += 1
                for statement in (
                    f"UPDATE {schema}.t_1 SET v = 'w{number}' WHERE id = 101 + {number % 9}",
                    f"DELETE FROM {schema}.t_2 WHERE id = 201 + {number % 9}",
                    f"REPLACE INTO {schema}.t_2 (id, u, n) VALUES (201 + {number % 7}, 201 + {number % 7}, {number})",
                    f"INSERT INTO {schema}.bare (a) VALUES ({number % 5})",
                ):
                    cursor.execute(statement)
        connection.close()

    with TaskRun(files, spark) as run:
        run.catch_up()
        files.target.run(
            f"USE {schema}",
            "UPDATE t SET n = 77 WHERE id > 100 AND id < 120",
            "DELETE FROM t WHERE id IN (215, 216)",
            "INSERT INTO t (id) VALUES (950)",
            "DELETE FROM bare WHERE a = 1 LIMIT 1",
        )
        writer = threading.Thread(target=write)
        writer.start()
        try:
            before, after = repaired(files, spark)
        finally:
            ended.set()
            writer.join()
        assert not run.crew.errors
        assert counts(before)["t"]["changed"] >= 7, counts(before)
        wrote = files.target.query(
            f"SELECT SUM(inserted + updated + deleted) FROM `{files.meta}`.`{files.name}_repair`"
        )
        assert int(wrote[0][0]) >= 10, after.notes
        run.catch_up()
        found = repaired(files, spark)[1]
        assert found.exit_code == 0, (after.notes, found.notes)


@pytest.mark.scenarios
def test_a_row_that_the_target_refuses_is_told_and_the_others_are_repaired(
    files: TaskFiles, spark: SparkSession
) -> None:
    (schema,) = files.schemas
    with TaskRun(files, spark) as run:
        run.catch_up()
        files.target.run(
            f"USE {schema}",
            "DELETE FROM t WHERE id IN (103, 104)",
            f"CREATE TRIGGER {schema}.guard BEFORE INSERT ON t FOR EACH ROW"
            " IF NEW.id = 103 THEN SIGNAL SQLSTATE '45000' SET MESSAGE_TEXT = 'not this one'; END IF",
        )
        after = repaired(files, spark)[1]
        assert (after.exit_code, counts(after)["t"]) == (1, {"missing": 1})
        assert any("refuses row 103: 1644: not this one" in note for note in after.notes), after.notes


@pytest.mark.scenarios
def test_a_value_that_the_target_would_cut_is_refused(files: TaskFiles, spark: SparkSession) -> None:
    """Also beside the number 0 of an ENUM, for which the session is not strict."""
    (schema,), source = files.schemas, files.sources["s1"]
    with TaskRun(files, spark) as run:
        run.catch_up()
        source.run(
            "SET sql_mode = ''",
            f"UPDATE {schema}.t_1 SET n = 1.50 WHERE id = 101",
            f"UPDATE {schema}.t_1 SET e = 'none', n = 2.50 WHERE id = 102",
        )
        run.catch_up()
    files.target.run(f"ALTER TABLE {schema}.t MODIFY n DECIMAL(9,0)", f"UPDATE {schema}.t SET e = 'a' WHERE id = 102")
    before, after = repaired(files, spark)
    assert counts(before)["t"]["changed"] == counts(after)["t"]["changed"] == 2
    told = [line for line in after.notes if "refuses row" in line]
    assert len(told) == 2, after.notes
    assert files.target.query(f"SELECT e FROM {schema}.t WHERE id = 102") == [("a",)]


@pytest.mark.scenarios
def test_what_is_typed(files: TaskFiles, spark: SparkSession) -> None:
    with TaskRun(files, spark) as run:
        run.catch_up()
    plant(files)

    def run_compare(*words: str) -> subprocess.CompletedProcess[str]:
        command = [UNSHARD, "compare", "task.yaml", "-s", "s1.yaml", "-q", *words]
        return subprocess.run(
            command,
            cwd=files.folder,
            capture_output=True,
            text=True,
            timeout=180,
            check=False,
            stdin=subprocess.DEVNULL,
        )

    for words in (("--repair",), ("--yes",), ("--repair", "--yes", "--sql", "x.sql")):
        assert run_compare(*words).returncode == 2
    done = run_compare("--repair", "--yes")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "repaired 2 extra, 3 changed, 2 missing" in done.stdout
    assert "are equal" in done.stdout


@pytest.mark.scenarios
def test_a_commit_whose_answer_is_lost_is_not_done_again(
    files: TaskFiles, spark: SparkSession, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The receipt tells: of a table without a key a second DELETE would take a second row."""
    (schema,) = files.schemas
    with TaskRun(files, spark) as run:
        run.catch_up()
        files.target.run(f"INSERT INTO {schema}.bare SELECT * FROM {schema}.bare WHERE a = 2")
        lost: list[int] = []
        once = RepairTransaction.run

        def run_and_lose(self: Any, connection: Any) -> Any:
            done = once(self, connection)
            if not lost:
                lost.append(1)
                raise MySQLdb.OperationalError(2013, "Lost connection to server during query")
            return done

        monkeypatch.setattr(RepairTransaction, "run", run_and_lose)
        after = repaired(files, spark)[1]
        assert (lost, after.exit_code) == ([1], 0)
        assert f"{schema}.bare: repaired 1 extra, 0 changed, 0 missing" in after.notes
        assert not any("in another state" in note for note in after.notes), after.notes


@pytest.mark.scenarios
def test_a_task_that_delivers_at_least_once_is_left_alone(files: TaskFiles, spark: SparkSession) -> None:
    files = replace(files, keys={**files.keys, "delivery": "at-least-once"}).write()
    with TaskRun(files, spark) as run:
        run.catch_up()
        plant(files)
        after = repaired(files, spark)[1]
        assert counts(after) == PLANTED
        assert "COMPARE-013" in "\n".join(after.notes)


@pytest.mark.scenarios
def test_a_task_that_only_copies(files: TaskFiles, spark: SparkSession) -> None:
    """Nothing else writes to the target once its copy is done."""
    files = replace(files, keys={**files.keys, "task-mode": "full"}).write()
    with TaskRun(files, spark) as run:
        wait_until(run.crew.ended.is_set, "the copy")
    plant(files)
    status = f"UPDATE `{files.meta}`.`{files.name}_lightning_checkpoint_list` SET status = "
    files.target.run(f"{status} 'running'")
    after = repaired(files, spark)[1]
    assert (counts(after), "its copy is not done" in "\n".join(after.notes)) == (PLANTED, True)
    files.target.run(f"{status} 'finished'")
    after = repaired(files, spark)[1]
    assert after.exit_code == 0, after.notes


@pytest.mark.scenarios
def test_nothing_is_repaired_while_a_ddl_of_merged_tables_waits(files: TaskFiles, spark: SparkSession) -> None:
    """The row that is missing has a change that waits behind the DDL: it must not be written twice."""
    (schema,) = files.schemas
    files = replace(files, keys={**files.keys, "shard-mode": "pessimistic"}).write()
    source, stop = files.sources["s1"], threading.Event()
    subject = task_subject(load_files(files.task_path, files.source_paths), CompareWish())
    settings = CompareSettings(patience_seconds=60.0)
    with TaskRun(files, spark) as run:
        run.catch_up()
        files.target.run(f"DELETE FROM {schema}.t WHERE id = 103")
        found = subject.compare(settings, spark, print, stop)
        assert counts(found)["t"] == {"missing": 1}
        source.run(
            f"ALTER TABLE {schema}.t_1 ADD x INT DEFAULT 7",
            f"UPDATE {schema}.t_1 SET v = 'late' WHERE id IN (103, 104)",
        )
        after = subject.repair(found, replace(settings, patience_seconds=2.0), spark, print, stop)
        assert "COMPARE-014" in "\n".join(after.notes), after.notes
        assert files.target.query(f"SELECT id FROM {schema}.t WHERE id = 103") == []
        source.run(f"ALTER TABLE {schema}.t_2 ADD x INT DEFAULT 7")
        run.catch_up()
        after = repaired(files, spark)[1]
        assert after.exit_code == 0, after.notes
        assert files.target.query(f"SELECT v, x FROM {schema}.t WHERE id IN (103, 104)") == [("late", 7), ("late", 7)]
