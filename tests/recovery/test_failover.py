"""A source fails over to its replica: the task goes on there by GTID, or says why it can't."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from shutil import rmtree

import pytest
from pyspark.sql import SparkSession

from support.exactly_once import assert_exactly_once
from support.operated_tasks import ctl, operator_states
from support.replicas import Pair, replicated
from support.task_runs import Command, TaskFiles, TaskRun, at_work, newest
from support.waiting import wait_until
from unshard.config.files import load_source, load_task
from unshard.config.subtask import plan_subtasks
from unshard.errors import RelayError, UnshardError
from unshard.operate.reset import look, undo
from unshard.testing.compare import assert_equal
from unshard.testing.hold import row_held, stands_still
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.proxy import FaultProxy
from unshard.testing.workload import Workload, WorkPlan

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.recovery, pytest.mark.faults]

CROSS_PLACES = ("sync-cross-before", "sync-cross-after")
XA = (
    "XA START '{x}'",
    "INSERT INTO {table} (k, c, pad) VALUES (7, '{x}', 'xa')",
    "XA END '{x}'",
    "XA PREPARE '{x}'",
)


def failure(files: TaskFiles, spark: SparkSession) -> UnshardError:
    """What a run of the task fails with."""
    found = TaskRun(files, spark).start().error()
    assert isinstance(found, UnshardError)
    return found


@pytest.fixture
def pair() -> Iterator[Pair]:
    with replicated() as pair:
        yield pair


@pytest.fixture
def work(pair: Pair, schema: str) -> Workload:
    made = Workload(pair.primary, WorkPlan(schema, threads=1, large_rows=100))
    made.create()
    made.fill(300)
    return made


@pytest.fixture
def files(work: Workload, pair: Pair, target: MariadbServer, schema: str, tmp_path: Path) -> TaskFiles:
    syncer = {"compact": False, "batch": 20, "worker-count": 2}
    source = {"enable-gtid": True}
    servers = {"s1": pair.primary}
    return TaskFiles(tmp_path, schema, servers, target, (f"{schema}_1",), syncer=syncer, source=source).write()


def over(files: TaskFiles, pair: Pair) -> TaskFiles:
    """The same task, whose source file leads to the replica."""
    return replace(files, sources={"s1": pair.replica}).write()


def begins_anew(heir: TaskFiles, work: Workload, pair: Pair, target: MariadbServer, spark: SparkSession) -> None:
    """As the advice says: `--reset`, and the copy of the new server."""
    configs = plan_subtasks(load_task(heir.task_path), [load_source(path) for path in heir.source_paths])
    undo(configs, look(configs))
    with TaskRun(heir, spark) as run:
        run.catch_up()
    for name in work.plan.names:
        assert_equal([(pair.replica, name)], (target, name))


def test_a_task_goes_on_with_the_promoted_replica(
    files: TaskFiles, work: Workload, pair: Pair, target: MariadbServer, spark: SparkSession
) -> None:
    with TaskRun(files, spark) as run:
        run.catch_up()
        work.run(transactions=30)
        run.catch_up()
    work.run(transactions=30)
    pair.promote()
    work.server = pair.replica
    work.run(transactions=30)
    with TaskRun(over(files, pair), spark) as run:
        run.catch_up()
        work.run(transactions=30)
        run.catch_up()
        assert [one.before != one.now for one in run.sync.failovers] == [True]
    with TaskRun(over(files, pair), spark) as run:
        run.catch_up()
        assert run.sync.failovers == ()
    assert_exactly_once(pair.replica, target, work.plan.names)


def test_a_name_that_moves_in_the_middle_of_a_batch(
    files: TaskFiles, work: Workload, pair: Pair, target: MariadbServer, spark: SparkSession
) -> None:
    name = work.plan.names[0]
    with FaultProxy("127.0.0.1", pair.primary.port) as proxy:
        database = {"host": "127.0.0.1", "user": "root", "port": proxy.port}
        named = replace(files, source={**files.source, "from": database}).write()
        with TaskRun(named, spark) as run:
            run.catch_up()
            with row_held(target, name.quoted):
                pair.primary.run(f"UPDATE {name.quoted} SET k = k + 1", f"DELETE FROM {name.quoted} WHERE id < 50")
                wait_until(lambda: stands_still(target), "in the middle of a batch")
                pair.promote()
                proxy.lead_to("127.0.0.1", pair.replica.port)
                work.server = pair.replica
                work.run(transactions=20)
            run.files = replace(named, sources={"s1": pair.replica})
            run.catch_up()
            work.run(transactions=20)
            run.catch_up()
    assert_exactly_once(pair.replica, target, work.plan.names)


def test_what_is_refused(
    files: TaskFiles, work: Workload, pair: Pair, target: MariadbServer, spark: SparkSession
) -> None:
    """A source that can't be gone over to changes nothing, and the old one still can."""
    name = work.plan.names[0]
    with TaskRun(files, spark) as run:
        pair.catch_up()
        pair.pause()
        pair.primary.run(f"UPDATE {name.quoted} SET k = k + 1 WHERE id < 20")
        run.catch_up()
    for by_gtid, code in ((False, "RELAY-008"), (True, "RELAY-030")):
        rmtree(files.folder / "relay")
        with pytest.raises(RelayError, match=code):
            TaskRun(replace(over(files, pair), source={"enable-gtid": by_gtid}).write(), spark)
        with TaskRun(files.write(), spark) as run:
            run.catch_up()
    pair.go_on("CREATE DATABASE its_own")
    pair.promote()
    heir = over(files, pair)
    assert failure(heir, spark).code == "SYNC-061"
    begins_anew(heir, work, pair, target, spark)


def test_a_batch_of_which_nothing_is_applied(
    files: TaskFiles, work: Workload, pair: Pair, target: MariadbServer, spark: SparkSession
) -> None:
    """The replica lacks its transaction, and so does the target: nothing is lost."""
    table = work.plan.names[0].quoted
    with TaskRun(files, spark) as run:
        run.catch_up()
        pair.catch_up()
        pair.pause()
    target.run(f"INSERT INTO {table} (id, k, c, pad) VALUES (9999, 0, 'of', 'others')")
    pair.primary.run(f"INSERT INTO {table} (id, k, c, pad) VALUES (9999, 1, 'of', 'ours')")
    assert failure(files, spark).code == "SYNC-003"
    pair.die()
    target.run(f"DELETE FROM {table} WHERE id = 9999")
    work.server = pair.replica
    work.run(transactions=20)
    with TaskRun(over(files, pair), spark) as run:
        run.catch_up()
    for name in work.plan.names:
        assert_equal([(pair.replica, name)], (target, name))


def test_operators_for_the_binlog_of_the_server_before(
    files: TaskFiles, work: Workload, pair: Pair, target: MariadbServer, spark: SparkSession
) -> None:
    """One whose position was passed without it stops nothing; each other is taken back, and then given anew."""
    given = (str(files.task_path), "-s", "s1")
    work.server.run("CREATE DATABASE its_own", "CREATE TABLE its_own.other (id INT PRIMARY KEY)")
    with TaskRun(files, spark) as run:
        run.catch_up()
        passed = newest(pair.primary)
        ctl("binlog", "skip", *given, "-b", str(passed))
        work.server.run("INSERT INTO its_own.other VALUES (1)")
        run.catch_up()
    name, _, _ = passed.file.rpartition(".")
    places = [f"{name}.000998:4", f"{name}.000999:4"]
    for place in places:
        ctl("binlog", "skip", *given, "-b", place)
    pair.promote()
    work.server = pair.replica
    heir = over(files, pair)
    while places:
        error = failure(heir, spark)
        assert (error.code, error.values["places"]) == ("SYNC-067", ", ".join(places))
        ctl("binlog", "revert", *given, "-b", places.pop(0))
    assert operator_states(files) == ["missed", "reverted", "reverted"]
    table = work.plan.names[0].quoted
    with TaskRun(heir, spark) as run:
        run.catch_up()
        ctl("binlog", "skip", *given, "-b", str(newest(pair.replica)))
        work.server.run(f"INSERT INTO {table} (k, c, pad) VALUES (-7, 'left', 'out')")
        work.run(transactions=10)
        run.catch_up()
    assert target.query(f"SELECT COUNT(*) FROM {table} WHERE k = -7") == [(0,)]
    assert operator_states(files)[-1] == "applied"


def test_prepared_transactions_and_deaths_on_the_way(
    files: TaskFiles, work: Workload, pair: Pair, target: MariadbServer, spark: SparkSession
) -> None:
    name = work.plan.names[0]
    undone = f"{name.schema}.undone"
    pair.primary.run(f"CREATE TABLE {undone} LIKE {name.quoted}")
    with Command(files) as command:
        command.catch_up()
        ((last,),) = pair.primary.query(f"SELECT MAX(id) FROM {name.quoted}")
        before = min(last, 200)  # the prepared rows, which have locks, come behind it
        for xid, table in (("kept", name.quoted), ("undone", undone)):
            pair.primary.run(*(line.format(x=xid, table=table) for line in XA))
        pair.primary.run(f"UPDATE {name.quoted} SET k = k + 1 WHERE id < 20")
        command.catch_up()
        with row_held(target, name.quoted, "id > 100"):  # of a batch that is not begun nothing has to be finished
            pair.primary.run(f"UPDATE {name.quoted} FORCE INDEX (PRIMARY) SET k = k + 1 WHERE id < {before}")
            wait_until(lambda: stands_still(target), "in the middle of a batch")
            command.kill()
    pair.promote()
    pair.replica.run("XA COMMIT 'kept'", "XA ROLLBACK 'undone'", f"UPDATE {name.quoted} SET k = k + 1 WHERE id < 90")
    heir = over(files, pair)
    relay, aside = files.folder / "relay", files.folder / "aside"
    relay.rename(aside)
    assert failure(heir, spark).code == "RELAY-031"
    rmtree(relay)
    aside.rename(relay)
    for place in CROSS_PLACES:
        with Command(heir, crash_at=place) as command:
            command.dies(place)
    with Command(heir) as command:
        command.catch_up()
        command.interrupt()
        assert command.wait() == 0, command.text
    assert_exactly_once(pair.replica, target, work.plan.names)
    assert target.query(f"SELECT COUNT(*) FROM {name.quoted} WHERE pad = 'xa'") == [(1,)]
    assert target.query(f"SELECT COUNT(*) FROM {undone}") == [(0,)]


def test_a_copy_goes_over_once_its_dump_is_whole(
    files: TaskFiles, work: Workload, pair: Pair, target: MariadbServer, spark: SparkSession
) -> None:
    with Command(files, crash_at="subtask-loaded") as command:
        command.dies("subtask-loaded")
    work.run(transactions=20)
    pair.promote()
    work.server = pair.replica
    work.run(transactions=20)
    with TaskRun(over(files, pair), spark) as run:
        run.catch_up()
    assert_exactly_once(pair.replica, target, work.plan.names)


def test_a_dump_in_hand_is_of_one_server(
    files: TaskFiles, work: Workload, pair: Pair, target: MariadbServer, spark: SparkSession
) -> None:
    """The advice is the old server, or to begin anew with the new one."""
    with Command(files, crash_at="dump-table-after") as command:
        command.dies("dump-table-after")
    heir = over(files, pair)
    with pytest.raises(RelayError, match="RELAY-032"):
        TaskRun(heir, spark)
    pair.promote()
    begins_anew(heir, work, pair, target, spark)


def test_a_server_that_has_purged_what_comes_next(
    files: TaskFiles, work: Workload, pair: Pair, target: MariadbServer, spark: SparkSession
) -> None:
    """RELAY-020 says to begin anew: that does not ask the new server for the old one's transactions again."""
    with TaskRun(files, spark) as run:
        run.catch_up()
    work.run(transactions=20)
    pair.promote()
    work.server = pair.replica
    for _ in range(2):
        pair.replica.run("FLUSH BINARY LOGS")
        work.run(transactions=5)
    kept = newest(pair.replica).file

    def purged() -> bool:  # not while a transaction of the file may still have to be recovered from it
        pair.replica.run(f"PURGE BINARY LOGS TO '{kept}'")
        return bool(pair.replica.query("SHOW BINARY LOGS")[0][0] == kept)

    wait_until(purged, "purged")
    heir = over(files, pair)
    assert failure(heir, spark).code == "RELAY-020"
    begins_anew(heir, work, pair, target, spark)


def test_another_server_without_gtids(
    files: TaskFiles, work: Workload, pair: Pair, target: MariadbServer, spark: SparkSession
) -> None:
    """RELAY-008 stands for a task that has a place in the old log; one that begins anew needs no GTIDs."""
    plain = replace(files, source={}).write()
    with TaskRun(plain, spark) as run:
        run.catch_up()
    work.run(transactions=20)
    pair.promote()
    heir = over(plain, pair)
    with pytest.raises(RelayError, match="RELAY-008"):
        TaskRun(heir, spark)
    begins_anew(heir, work, pair, target, spark)


@pytest.mark.parametrize(
    ("inexact", "place"),
    [
        ({"delivery": "at-least-once"}, "sync-chunk-after:4"),
        ({"mydumpers": {"own": {"extra-args": "--consistency none -r 100"}}}, "sync-chunk-commit:2"),
    ],
    ids=["at-least-once", "dump-without-lock"],
)
def test_what_may_be_applied_already_is_told_by_the_new_names_too(
    inexact: dict[str, object],
    place: str,
    files: TaskFiles,
    work: Workload,
    pair: Pair,
    target: MariadbServer,
    spark: SparkSession,
) -> None:
    """Killed where changes behind the checkpoint are in the target: safe mode begins and ends by the replica's log."""
    instance = {"mydumper-config-name": "own"} if "mydumpers" in inexact else {}
    loose = replace(files, keys=inexact, instance=instance).write()
    with at_work(work, share=0.1), Command(loose, crash_at=place) as command:
        command.dies(place)
    pair.promote()
    work.server = pair.replica
    work.run(transactions=20)
    with TaskRun(over(loose, pair), spark) as run:
        run.catch_up()
        work.run(transactions=20)
        run.catch_up()
    for name in work.plan.names:
        assert_equal([(pair.replica, name)], (target, name))
