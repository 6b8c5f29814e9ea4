"""`unshard cutover`: it says that the target has all only where it has, and tells what is in the way."""

from __future__ import annotations

import json
import re
import shlex
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import MySQLdb
import pytest
from pyspark.sql import SparkSession

from support.cutovers import Trial, merged_tables
from support.death_by_error import die_by_error
from support.task_runs import UNSHARD, TaskFiles, TaskRun, executed_gtids, newest
from support.waiting import wait_until
from unshard.compare.cutover import CutoverEnd, CutoverRecord, CutoverSettings, go_back
from unshard.compare.executor import rows as reading
from unshard.errors import CompareError, EngineError, SourceError
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.throwaway_server import ThrowawayServer


@pytest.fixture
def files(
    source_server: MariadbServer,
    second_source: MariadbServer,
    target_server: ThrowawayServer,
    schema: str,
    tmp_path: Path,
) -> Iterator[TaskFiles]:
    with merged_tables((source_server, second_source), target_server, schema, tmp_path) as files:
        yield files


@pytest.mark.server
@pytest.mark.spark
def test_all_is_there_at_the_positions_that_it_tells(files: TaskFiles, spark: SparkSession, schema: str) -> None:
    for number, server in enumerate(files.sources.values(), 1):
        server.run(f"ALTER TABLE {schema}.t_{number} MODIFY id INT NOT NULL AUTO_INCREMENT")
    with TaskRun(files, spark) as run:
        run.catch_up()
        trial = Trial(files, spark)
        files.sources["s1"].run(f"UPDATE {schema}.t_1 SET v = -1 WHERE id < 1050")
        inserted, deleted = f"INSERT INTO {schema}.t_2 VALUES (2900, 1)", f"DELETE FROM {schema}.t_2 WHERE id = 2900"
        files.sources["s2"].run("BEGIN", inserted, deleted, "COMMIT")
        proof = trial.run()
        assert proof is not None
        assert [line.partition(" from ")[0] for line in proof.counters] == [f"{schema}.t: AUTO_INCREMENT raised"]
        files.target.run(f"INSERT INTO {schema}.t (v) VALUES (1)")
        assert files.target.query(f"SELECT MAX(id) > 2900 FROM {schema}.t") == [(1,)], "the id is one of before"
        assert trial.asked == [["s1", "s2"]]
        assert proof.outcome.exit_code == 0
        for name, server in files.sources.items():
            assert proof.ends[name].position == str(newest(server))
            assert "".join(proof.ends[name].gtid.split()) == executed_gtids(server)
        assert all(place.to_dict()["exact"] for place in proof.outcome.places)


class WritesLate(threading.Event):
    """Asked whether to stop, once the ends of the sources that rest are known: somebody writes then, and it goes on."""

    def __init__(self, write: Callable[[], None]) -> None:
        super().__init__()
        self.rests, self._write = threading.Event(), write

    def is_set(self) -> bool:
        if self.rests.is_set():
            self.rests.clear()
            self._write()
        return False


@pytest.mark.server
@pytest.mark.spark
@pytest.mark.scenarios
def test_what_is_in_the_way_is_told(
    files: TaskFiles, spark: SparkSession, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    source = files.sources["s2"]

    def write() -> None:
        source.run(f"UPDATE {schema}.t_2 SET v = v + 1 WHERE id = 2001")

    with TaskRun(files, spark) as run:
        run.catch_up()
        assert Trial(files, spark, answer=False).run() is None
        late = WritesLate(write)
        with pytest.raises(CompareError, match="COMPARE-015") as told:
            Trial(files, spark, at_rest=late.rests.set, stop=late).run()
        assert told.value.where.source == "s2"
        with pytest.raises(CompareError, match="COMPARE-015"):
            Trial(files, spark, after=write).run()
        run.catch_up()
        files.target.run(f"DELETE FROM {schema}.t WHERE id = 1007")
        proof = Trial(files, spark).run()
        assert proof is not None
        assert proof.outcome.exit_code == 1
    write()  # the task is stopped
    with pytest.raises(CompareError, match="COMPARE-016") as told:
        Trial(files, spark, CutoverSettings(wait_seconds=1)).run()
    assert told.value.where.source == "s2"
    assert str(newest(source)) in told.value.message
    monkeypatch.setattr(reading, "PATIENCE_SECONDS", 1)
    gone = files.folder / "s1.yaml"
    gone.write_text(gone.read_text().replace(f"port: {files.sources['s1'].port}", "port: 1"))
    with pytest.raises(SourceError, match="SOURCE-001"):
        Trial(files, spark).run()


@pytest.mark.server
@pytest.mark.spark
@pytest.mark.scenarios
def test_a_prepared_transaction_is_in_the_way(files: TaskFiles, spark: SparkSession, schema: str) -> None:
    """It outlives its connection, and could be committed after the cut-over."""
    source = files.sources["s1"]

    def prepare() -> None:
        with closing(source.connection()) as connection, connection.cursor() as cursor:
            cursor.execute("XA START 'order',X'ff00'")
            cursor.execute(f"UPDATE {schema}.t_1 SET v = v - 7 WHERE id = 1001")
            cursor.execute("XA END 'order',X'ff00'")
            cursor.execute("XA PREPARE 'order',X'ff00'")

    def end(how: str) -> None:
        def ended() -> bool:
            try:
                source.run(f"XA {how} 'order',X'ff00'")
            except MySQLdb.Error:  # its session is not over yet
                return False
            return True

        wait_until(ended, "the transaction is ended")

    with TaskRun(files, spark) as run:
        prepare()
        run.catch_up()
        with pytest.raises(CompareError, match="COMPARE-025") as told:
            Trial(files, spark).run()
        assert "'order',X'ff00'" in told.value.message
        assert told.value.where.source == "s1"
        end("COMMIT")
        run.catch_up()
        with pytest.raises(CompareError, match="COMPARE-025"):
            Trial(files, spark, after=prepare).run()
        end("ROLLBACK")
        run.catch_up()
        proof = Trial(files, spark).run()
        assert proof is not None
        assert (proof.outcome.exit_code, proof.unasked) == (0, ())


@pytest.mark.server
@pytest.mark.spark
@pytest.mark.scenarios
def test_the_comparison_goes_on_where_it_was_broken_off(files: TaskFiles, spark: SparkSession, schema: str) -> None:
    """But not where somebody has written since."""
    with TaskRun(files, spark) as run:
        run.catch_up()
        trial = Trial(files, spark)
        trial.after = trial.stop.set
        trial.run()

        def break_off() -> None:
            raise KeyboardInterrupt

        ranges = trial.file.with_name("cutover.json.ranges")
        lines: list[int] = []
        for write in (False, True):
            ranges.write_text('{"version": 1, "comparison": "of others"}\n')
            if write:
                files.sources["s1"].run(f"UPDATE {schema}.t_1 SET v = 0 WHERE id = 1001")
            again = Trial(files, spark, before=lambda: lines.append(int(ranges.exists())))
            if write:
                assert again.run() is not None
            else:  # the ends are those of before, so the file is taken for this comparison's
                with pytest.raises(CompareError, match="COMPARE-008"):
                    again.run()
        assert lines == [1, 0]


@pytest.mark.server
@pytest.mark.spark
@pytest.mark.scenarios
@pytest.mark.parametrize("change", ["TRUNCATE TABLE {0}.t", "DELETE FROM {0}.t WHERE id < 1003"])
def test_rows_that_the_target_has_lost_since_are_missed(
    files: TaskFiles, spark: SparkSession, schema: str, change: str
) -> None:
    """The cut-over ended after the first range; the sources rest, so the same one goes on."""
    with TaskRun(files, spark) as run:
        run.catch_up()
        with pytest.MonkeyPatch.context() as patch:
            die_by_error(patch, "compare-range-after")
            with pytest.raises(EngineError):
                Trial(files, spark).run()
        files.target.run(change.format(schema))
        proof = Trial(files, spark).run()
    assert proof is not None
    assert proof.outcome.exit_code == 1


@pytest.mark.scenarios
@pytest.mark.server
@pytest.mark.spark
def test_read_only_and_back(files: TaskFiles, spark: SparkSession, schema: str) -> None:
    settings = CutoverSettings(read_only=True, wait_seconds=60, rest_seconds=1)
    servers = files.sources
    more = {"super_read_only": "OFF"} if servers["s1"].product == "MySQL" else {}
    servers["s2"].run("SET GLOBAL read_only = ON")
    with TaskRun(files, spark) as run:
        run.catch_up()
        trial = Trial(files, spark, settings)
        for _ in range(2):  # the second one must not take its own settings for those of before
            proof = trial.run()
            assert proof is not None
            assert proof.outcome.exit_code == 0
            assert trial.asked == []
            assert [server.query("SELECT @@read_only") for server in servers.values()] == [[(1,)], [(1,)]]
            assert {name: dict(kept) for name, kept in trial.record().read_only.items()} == {
                "s1": {"read_only": "OFF"} | more,
                "s2": {"read_only": "ON"} | more,
            }
    statements = ["s1: SET GLOBAL read_only = OFF"]
    if more:
        statements = ["s1: SET GLOBAL super_read_only = OFF", *statements, "s2: SET GLOBAL super_read_only = OFF"]
    assert go_back(trial.watches, trial.record()) == statements
    assert [server.query("SELECT @@read_only") for server in servers.values()] == [[(0,)], [(1,)]]
    revoked = "SUPER, SYSTEM_VARIABLES_ADMIN" if more else "SUPER, READ_ONLY ADMIN"
    account = "CREATE USER few@'%'", "GRANT ALL ON *.* TO few@'%'", f"REVOKE {revoked} ON *.* FROM few@'%'"
    servers["s1"].run(*account)
    path = files.folder / "s1.yaml"
    path.write_text(path.read_text().replace("user: root", "user: few"))
    try:
        with TaskRun(files, spark) as run:
            run.catch_up()
            trial = Trial(files, spark, settings)
            with pytest.raises(CompareError, match="COMPARE-017"):
                trial.run()
    finally:
        servers["s1"].run("DROP USER few@'%'")


@pytest.mark.scenarios
@pytest.mark.server
@pytest.mark.spark
def test_a_cut_over_as_it_is_typed(files: TaskFiles, spark: SparkSession, schema: str) -> None:
    sources = [word for path in files.source_paths for word in ("-s", path.name)]

    def cut_over(*words: str) -> subprocess.CompletedProcess[str]:
        command = [UNSHARD, "cutover", "task.yaml", *sources, "--rest", "1", *words]
        options: dict[str, Any] = {"stdin": subprocess.DEVNULL, "capture_output": True, "text": True}
        return subprocess.run(command, cwd=files.folder, timeout=180, check=False, **options)

    assert cut_over().returncode == 2
    with TaskRun(files, spark) as run:
        run.catch_up()
        files.target.run(f"DELETE FROM {schema}.t WHERE id = 1007")
        done = cut_over("--yes", "-q")
        assert done.returncode == 1, done.stdout + done.stderr
        assert "NOT done" in done.stdout
        assert "missing: id=1007" in done.stdout
        assert "unshard compare task.yaml -s s1.yaml -s s2.yaml --repair" in done.stdout
        files.target.run(f"INSERT INTO {schema}.t VALUES (1007, 7)")
        done = cut_over("--read-only", "--json")
        assert done.returncode == 0, done.stdout + done.stderr
        form = json.loads(done.stdout)
        report = json.loads((files.folder / f"unshard-cutover-{files.name}.json").read_text())
        assert form["cut_over"]
        assert report["sources"] == form["sources"]
        assert form["sources"][0]["position"] == str(newest(files.sources["s1"]))
        assert "step 5 of 5" in done.stderr
        text = (files.folder / f"unshard-cutover-{files.name}.txt").read_text()
        assert "SET GLOBAL read_only = OFF" in text
        assert "rows and the target's are equal" in text
        kept = files.folder / f"unshard-cutover-{files.name}.state.json"
        record = kept.read_text()
        kept.write_text(record.replace(f'"{files.name}"', '"another"'))
        refused = cut_over("--yes")
        assert refused.returncode == 2
        assert "COMPARE-018" in refused.stderr + refused.stdout
        kept.unlink()
        assert cut_over("--yes", "-q").returncode == 0, "what the advice says: the record of another one is removed"
        kept.write_text(record)
        done = cut_over("--back")
        names = ("super_read_only", "read_only") if files.sources["s1"].product == "MySQL" else ("read_only",)
        assert done.stdout.splitlines() == [
            f"{source}: SET GLOBAL {name} = OFF" for source in ("s1", "s2") for name in names
        ]
        assert files.sources["s1"].query("SELECT @@read_only") == [(0,)]

        done = cut_over("--read-only", "--state", "own.json", "--report", "over")
        assert done.returncode == 0, done.stdout + done.stderr
        assert f"there is no unshard-cutover-{files.name}.state.json" in cut_over("--back").stdout
        assert files.sources["s1"].query("SELECT @@read_only") == [(1,)]
        (undo,) = re.findall(r"unshard (cutover .* --back), or by hand", (files.folder / "over.txt").read_text())
        subprocess.run([UNSHARD, *shlex.split(undo)], cwd=files.folder, timeout=180, check=True)
        assert files.sources["s1"].query("SELECT @@read_only") == [(0,)]


def test_the_record_of_another_task_and_what_is_none(tmp_path: Path) -> None:
    path = tmp_path / "state.json"
    kept = CutoverRecord("a", "h:1", {"s": {"read_only": "OFF"}}, {"s": CutoverEnd("0-1", "bin.000001:4", "0-1-2")})
    kept.save(path)
    assert CutoverRecord.load(path, "a", "h:1") == kept
    with pytest.raises(CompareError, match="it is of task a into h:1"):
        CutoverRecord.load(path, "b", "h:1")
    for text in ("{", "[]", '{"version": 9}', '{"version": 1}'):
        path.write_text(text)
        with pytest.raises(CompareError, match="COMPARE-018"):
            CutoverRecord.load(path, "a", "h:1")
