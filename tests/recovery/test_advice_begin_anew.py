"""Errors whose advice is to begin anew, or to remove a folder, followed to its end: the target equals the source."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from shutil import rmtree

import pytest

from support.advice_walks import Walk
from support.server_clock import next_second
from support.task_runs import TaskRun, newest
from support.waiting import wait_until
from unshard.error_catalogue import CATALOGUE
from unshard.error_catalogue.entry import ANEW
from unshard.model.table import TableName
from unshard.testing.hold import row_held, stands_still

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.recovery, pytest.mark.faults]


def dump_not_free(walk: Walk) -> None:
    folder = Path(walk.configs()[0].loader.directory)
    folder.mkdir(parents=True)
    (folder / "notes.txt").write_text("of somebody else")


def record_lost(walk: Walk) -> None:
    walk.dumped()
    (record,) = [path for path in walk.dump.rglob("*.json") if walk.name.table in path.name]
    record.unlink()


def relay_index_lost(walk: Walk) -> None:
    walk.followed()
    (index,) = walk.relay.rglob("*.index")
    index.write_text("nonsense")


def dump_lost_behind_the_load(walk: Walk) -> None:
    walk.loaded()
    rmtree(walk.dump)


def dump_lost_in_the_load(walk: Walk) -> None:
    walk.merges("id INT PRIMARY KEY, v VARCHAR(20)")
    walk.source.run(f"INSERT INTO {walk.name}_2 VALUES (2, 'twice')")
    assert walk.fails() == "LOAD-005"
    rmtree(walk.dump)
    walk.source.run(f"UPDATE {walk.name}_2 SET id = 20")


def with_another_table(walk: Walk) -> None:
    """Dump one of two tables, then let the list have both."""
    other = walk.also("other", "(id INT PRIMARY KEY)")
    walk.source.run(f"INSERT INTO {other} VALUES (1), (2)")
    only = {"own": {"do-tables": [{"db-name": walk.name.schema, "tbl-name": walk.name.table}]}}
    walk.change(keys={"block-allow-list": only})
    walk.dumped()
    walk.change(keys={})


def key_of_some_shards(walk: Walk) -> None:
    walk.merges("id INT PRIMARY KEY, v VARCHAR(20)")
    walk.source.run(
        f"INSERT INTO {walk.name}_2 VALUES (20, 'a')",
        f"ALTER TABLE {walk.name}_2 ADD KEY other (v)",
        f"ALTER TABLE {walk.name} ADD UNIQUE KEY u (v)",
    )


def shards_that_differ(walk: Walk) -> None:
    walk.merges("id INT PRIMARY KEY, v VARCHAR(20), w INT NOT NULL")
    walk.source.run(f"INSERT INTO {walk.name}_2 VALUES (20, 'c', 1)")


def binlog_purged(walk: Walk) -> None:
    walk.followed()
    walk.source.run(f"INSERT INTO {walk.name} VALUES (100, 'lost')", "FLUSH BINARY LOGS")
    kept = newest(walk.source).file

    def purged() -> bool:  # not while the server still serves the file to a replica that has gone
        walk.source.run(f"PURGE BINARY LOGS TO '{kept}'")
        return bool(walk.source.query("SHOW BINARY LOGS")[0][0] == kept)

    wait_until(purged, "purged")


def source_reset(walk: Walk) -> None:
    walk.source.run("RESET MASTER")
    walk.followed()
    next_second(walk.source)  # the format event's time tells the two files apart
    walk.source.run("RESET MASTER")
    for number in range(100, 120):
        walk.source.run(f"INSERT INTO {walk.name} VALUES ({number}, 'in the new log')")


def waiting_ddl_lost(walk: Walk) -> None:
    walk.merges("id INT PRIMARY KEY, v VARCHAR(20)")
    walk.followed()
    walk.source.run(f"ALTER TABLE {walk.name} ADD COLUMN w INT", f"INSERT INTO {walk.name} VALUES (100, 'waits', 1)")
    walk.followed()
    walk.target.run(f"DELETE FROM `{walk.files.meta}`.`{walk.files.name}_syncer_sharding_meta`")


def target_dropped(walk: Walk) -> None:
    walk.followed()
    walk.target.run(f"DROP TABLE {walk.name}")
    walk.source.run(f"INSERT INTO {walk.name} VALUES (100, 'into nothing')")


RESET: dict[str, tuple[str, Callable[[Walk], None], str]] = {
    "the dump is lost behind the load": ("LOAD-020", dump_lost_behind_the_load, ""),
    "the dump is lost in the load": ("LOAD-008", dump_lost_in_the_load, ""),
    "the dump lacks a table": ("DUMP-014", with_another_table, ""),
    "a key that not all shards have": ("LOAD-022", key_of_some_shards, "UPDATE {}_2 SET v = 'other'"),
    "shards that differ": ("SHARD-029", shards_that_differ, "ALTER TABLE {} ADD COLUMN w INT NOT NULL DEFAULT 7"),
    "the binlog is purged": ("RELAY-010", binlog_purged, ""),
    "a DDL that waits is lost": ("SYNC-086", waiting_ddl_lost, "ALTER TABLE {}_2 ADD COLUMN w INT"),
    "the target's table is dropped": ("SYNC-006", target_dropped, ""),
}
"""By what has happened: the code, how it comes to that, and what the advice says to do on the source before."""
FOLDERS: dict[str, tuple[str, Callable[[Walk], None], str]] = {
    "the dump folder is not free": ("DUMP-002", dump_not_free, "dump"),
    "a record of the dump is lost": ("DUMP-006", record_lost, "dump"),
    "the relay folder is not in order": ("RELAY-016", relay_index_lost, "relay"),
}
"""The same; and the folder that the advice says to remove."""


@pytest.mark.parametrize("case", RESET)
def test_a_reset_begins_anew(case: str, walk: Walk) -> None:
    code, breaks, mend = RESET[case]
    breaks(walk)
    assert walk.fails() == code
    assert ANEW in CATALOGUE[code].hint
    if mend:
        walk.source.run(mend.format(walk.name))
    walk.reset()
    walk.ends_equal()


def test_a_source_that_was_reset(walk: Walk) -> None:
    source_reset(walk)
    assert walk.fails() == "RELAY-015"
    assert ANEW in CATALOGUE["RELAY-015"].hint
    assert "remove the relay folder" in CATALOGUE["RELAY-015"].hint
    rmtree(walk.relay)
    walk.reset()
    walk.ends_equal()


@pytest.mark.parametrize("case", FOLDERS)
def test_a_folder_is_removed(case: str, walk: Walk) -> None:
    code, breaks, folder = FOLDERS[case]
    breaks(walk)
    assert walk.fails() == code
    assert "remove" in CATALOGUE[code].hint
    rmtree(walk.configs()[0].loader.directory if folder == "dump" else walk.relay)
    walk.ends_equal()


def test_a_table_is_left_out(walk: Walk) -> None:
    """Of a copy that has its rows in the dump, and of one that is followed."""
    left = f"{walk.name}_left"
    walk.source.run(f"CREATE TABLE {left} LIKE {walk.name}", f"INSERT INTO {left} VALUES (1, 'a')")
    walk.dumped()
    schema = walk.name.schema
    lists = {"own": {"do-dbs": [schema], "ignore-tables": [{"db-name": schema, "tbl-name": "t_left"}]}}
    walk.change(keys={"block-allow-list": lists})
    walk.ends_equal()
    walk.source.run(f"INSERT INTO {left} VALUES (2, 'b')")
    walk.ends_equal(2000)
    assert walk.target.query(f"SHOW TABLES FROM {schema}") == [("t",)]


def test_the_list_of_a_dump_is_put_back(walk: Walk) -> None:
    with_another_table(walk)
    assert walk.fails() == "DUMP-014"
    assert "so that it does not select these tables" in CATALOGUE["DUMP-014"].hint
    schema = walk.name.schema
    left = {"own": {"do-dbs": [schema], "ignore-tables": [{"db-name": schema, "tbl-name": "other"}]}}
    walk.change(keys={"block-allow-list": left})
    walk.others.clear()
    walk.ends_equal()
    assert walk.target.query(f"SHOW TABLES FROM {schema}") == [("t",)]


def test_a_row_of_others_is_removed(walk: Walk) -> None:
    walk.followed()
    walk.target.run(f"INSERT INTO {walk.name} VALUES (100, 'of others')")
    walk.source.run(f"INSERT INTO {walk.name} VALUES (100, 'ours')")
    assert walk.fails() == "SYNC-003"
    assert "remove its row" in CATALOGUE["SYNC-003"].hint
    walk.target.run(f"DELETE FROM {walk.name} WHERE id = 100")
    walk.ends_equal()


def test_a_table_of_others_is_dropped(walk: Walk) -> None:
    walk.followed()
    walk.target.run(f"CREATE TABLE {walk.name}_new (id INT PRIMARY KEY)")
    walk.source.run(f"RENAME TABLE {walk.name} TO {walk.name}_new")
    assert walk.fails() == "DDL-012"
    assert "drop that table" in CATALOGUE["DDL-012"].hint
    walk.target.run(f"DROP TABLE {walk.name}_new")
    walk.name = TableName(walk.name.schema, f"{walk.name.table}_new")
    walk.ends_equal()


def test_a_relay_file_is_removed(walk: Walk) -> None:
    """While a batch of it is half applied: the target holds it up, and the task is stopped."""
    walk.followed()
    with TaskRun(walk.files, walk.spark) as run:
        run.catch_up()
        run.crew.wait_on_stop = 0
        with row_held(walk.target, walk.name.quoted):
            walk.source.run(f"UPDATE {walk.name} SET v = 'changed'")
            wait_until(lambda: stands_still(walk.target), "in the middle of a batch")
            run.stop()
    file = max(path for path in walk.relay.rglob("*.[0-9]*") if path.is_file())
    assert "remove this relay file and all later ones" in CATALOGUE["BINLOG-001"].hint
    file.unlink()
    walk.ends_equal()
