"""Errors about a place of the log whose advice is to begin anew, followed to its end: the target equals the source."""

from __future__ import annotations

from collections.abc import Callable
from shutil import rmtree

import pytest

from support.advice_walks import Walk
from support.comparisons import compared
from support.task_runs import TaskRun, newest
from support.waiting import wait_until
from unshard.error_catalogue import CATALOGUE
from unshard.error_catalogue.entry import ANEW
from unshard.errors import UnshardError

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.recovery, pytest.mark.faults]

MINIMAL = "SET SESSION binlog_row_image = MINIMAL"


def error_value_in_a_key(walk: Walk) -> None:
    walk.also("odd", "(k ENUM('a', '') PRIMARY KEY, w INT)")
    walk.followed()
    walk.write(["SET sql_mode = ''", "INSERT INTO {1} VALUES ('nonsense', 1)", "UPDATE {1} SET w = 2"])


def altered_without_a_word(walk: Walk) -> None:
    walk.followed()
    walk.write(
        [
            "SET sql_log_bin = 0",
            "ALTER TABLE {0} ADD w INT",
            "SET sql_log_bin = 1",
            "INSERT INTO {0} VALUES (3, 'c', 1)",
        ]
    )


def question_mark_in_a_member(walk: Walk) -> None:
    walk.followed()
    walk.also("odd", "(id INT PRIMARY KEY, e ENUM('what?', 'that') CHARACTER SET utf8mb4)")
    walk.write(["INSERT INTO {1} VALUES (1, 'what?'), (2, 'that')"])


def history_that_lacks_columns(walk: Walk) -> None:
    walk.also("odd", "(id INT PRIMARY KEY, w INT, x INT) WITH SYSTEM VERSIONING")
    walk.write(["INSERT INTO {1} VALUES (1, 1, 1)"])
    walk.followed()
    walk.write([MINIMAL, "UPDATE {1} SET w = 2"])


def prepared_before_it_began(walk: Walk) -> None:
    walk.write(["XA START 'early'", "INSERT INTO {0} VALUES (3, 'xa')", "XA END 'early'", "XA PREPARE 'early'"])
    walk.write(["FLUSH BINARY LOGS"])
    walk.followed()
    walk.write(["XA COMMIT 'early'"])


def key_of_the_target_is_not_logged(walk: Walk) -> None:
    odd = walk.also("odd", "(id INT PRIMARY KEY, w INT NOT NULL, x INT)")
    walk.target.run(
        f"CREATE DATABASE {odd.schema}", f"CREATE TABLE {odd} (id INT, w INT NOT NULL, x INT, PRIMARY KEY (id, w))"
    )
    walk.write(["INSERT INTO {1} VALUES (1, 1, 1)"])
    walk.followed()
    walk.write([MINIMAL, "UPDATE {1} SET x = 2"])


def images_in_safe_mode(walk: Walk) -> None:
    walk.change(syncer={"safe-mode": True})
    walk.followed()
    walk.write([MINIMAL, "UPDATE {0} SET v = 'c' WHERE id = 1"])


def altered_during_a_dump_without_a_lock(walk: Walk) -> None:
    walk.followed()
    at = newest(walk.source)
    walk.target.run(
        f"UPDATE `{walk.files.meta}`.`{walk.files.name}_syncer_checkpoint` SET exit_safe_binlog_name = '{at.file}',"
        f" exit_safe_binlog_pos = {at.offset + 100_000},"
        """ table_info = '{"delivery": "exactly-once", "cause": "dump"}' WHERE is_global"""
    )
    walk.write(["ALTER TABLE {0} ADD w INT"])


def log_that_ends_before(walk: Walk) -> None:
    walk.source.run("RESET MASTER")
    walk.write(["INSERT INTO {0} VALUES (3, 'c'), (4, 'd')"])
    walk.followed()
    walk.source.run("DO SLEEP(1.1)", "RESET MASTER")  # the format event's time tells the two files apart


def damaged_file(walk: Walk) -> None:
    walk.followed()
    walk.write(["INSERT INTO {0} VALUES (3, 'to be damaged')", "FLUSH BINARY LOGS"])
    for file in walk.source.binlog_files():
        data = file.read_bytes()
        if b"to be damaged" in data:
            file.write_bytes(data.replace(b"to be damaged", b"to be DAMAGED"))


RESET: dict[str, tuple[str, Callable[[Walk], None], tuple[str, ...]]] = {
    "an error value in a key": ("BINLOG-021", error_value_in_a_key, ("DELETE FROM {1}",)),
    "a structure that is not of that time": ("BINLOG-022", altered_without_a_word, ()),
    "a question mark in a member": (
        "BINLOG-045",
        question_mark_in_a_member,
        ("DELETE FROM {1} WHERE id = 1", "ALTER TABLE {1} MODIFY e ENUM('what', 'that')"),
    ),
    "history that lacks columns": ("BINLOG-046", history_that_lacks_columns, ()),
    "a transaction that was prepared before": ("BINLOG-034", prepared_before_it_began, ()),
    "a key that is not logged": ("SYNC-030", key_of_the_target_is_not_logged, ()),
    "a part of a row in safe mode": ("SYNC-044", images_in_safe_mode, ()),
    "a DDL during a dump without a lock": ("SYNC-047", altered_during_a_dump_without_a_lock, ()),
    "a log that ends before": ("RELAY-009", log_that_ends_before, ()),
    "a file that is damaged": ("RELAY-005", damaged_file, ()),
}
"""By what has happened: the code, how it comes to that, and what the advice says to do on the source before."""


@pytest.mark.parametrize("case", RESET)
def test_a_log_that_can_not_be_followed_is_left_behind(case: str, walk: Walk) -> None:
    code, breaks, mend = RESET[case]
    breaks(walk)
    assert walk.fails() == code
    assert ANEW.removeprefix("begin ") in CATALOGUE[code].hint
    walk.write(mend)
    if "remove the relay folder" in CATALOGUE[code].hint:
        rmtree(walk.relay)
    walk.reset()
    walk.ends_equal()


def test_a_temporary_table_behind_rows_of_a_session_that_does_not_log_rows(walk: Walk) -> None:
    walk.followed()
    made = ("INSERT INTO {0} VALUES (3, UUID_SHORT())", "CREATE TEMPORARY TABLE mysql.x (id INT)")
    walk.write(["SET binlog_format = MIXED", "BEGIN", *made, "INSERT INTO {0} VALUES (4, UUID_SHORT())", "COMMIT"])
    error = walk.failed()
    assert error.code == "BINLOG-004"
    assert "binlog_format=ROW" in error.hint
    assert ANEW in error.hint
    walk.reset()
    walk.ends_equal()


def test_gtids_that_are_purged(walk: Walk) -> None:
    ((server,),) = walk.source.query("SELECT @@server_id")
    begin = {"meta": {"binlog-gtid": f"0-{server}-1"}}
    walk.change(source={"enable-gtid": True}, keys={"task-mode": "incremental"}, instance=begin)
    walk.write(["FLUSH BINARY LOGS"])
    kept = newest(walk.source).file

    def purged() -> bool:
        walk.source.run(f"PURGE BINARY LOGS TO '{kept}'")
        return bool(walk.source.query("SHOW BINARY LOGS")[0][0] == kept)

    wait_until(purged, "purged")
    assert walk.fails() == "RELAY-020"
    assert "in `task-mode: all`, begin anew" in CATALOGUE["RELAY-020"].hint
    walk.change(keys={"task-mode": "all"}, instance={})
    walk.reset()
    walk.ends_equal()


def test_a_target_table_that_goes_while_rows_come(walk: Walk) -> None:
    run = TaskRun(walk.files, walk.spark)
    with run.failing():
        run.catch_up()
        walk.write(["INSERT INTO {0} VALUES (3, 'c')"])
        run.catch_up()
        walk.target.run(f"DROP TABLE {walk.name}")
        walk.write(["INSERT INTO {0} VALUES (4, 'd')"])
        error = run.error()
    assert isinstance(error, UnshardError)
    assert error.code == "SYNC-010"
    walk.reset()
    walk.ends_equal()


def test_a_comparison_without_the_target_table(walk: Walk) -> None:
    walk.followed()
    walk.target.run(f"DROP TABLE {walk.name}")
    outcome = compared(walk.files, walk.spark)
    assert "COMPARE-001" in str(outcome.to_dict())
    walk.reset()
    walk.ends_equal()


# Rows that were made of a column or of a name.


def mapped(walk: Walk, column: str) -> None:
    """The rows of `t_1`, whose key a column mapping makes."""
    walk.source.run(
        f"CREATE TABLE {walk.name}_1 (k INT PRIMARY KEY, id BIGINT NOT NULL DEFAULT 5, v VARCHAR(20))",
        f"INSERT INTO {walk.name}_1 VALUES (1, 1, 'a'), (2, 2, 'b')",
    )
    rule = {
        "schema-pattern": walk.name.schema,
        "table-pattern": "t_*",
        "expression": "partition id",
        "source-column": column,
        "target-column": column,
        "arguments": ["1", "", "t_"],
    }
    walk.change(keys={"column-mappings": {"ids": rule}}, instance={"column-mapping-rules": ["ids"]})


MAPPED: dict[str, tuple[str, tuple[str, ...]]] = {
    "the column is altered": ("SYNC-017", ("ALTER TABLE {0}_1 MODIFY id BIGINT UNSIGNED NOT NULL DEFAULT 5",)),
    "the table gets another name": ("SYNC-018", ("RENAME TABLE {0}_1 TO {0}_2",)),
    "the column is not logged": ("SYNC-032", (MINIMAL, "INSERT INTO {0}_1 (k, v) VALUES (3, 'c')")),
}


@pytest.mark.parametrize("case", MAPPED)
def test_rows_that_a_mapping_has_made_are_made_again(case: str, walk: Walk) -> None:
    code, statements = MAPPED[case]
    mapped(walk, "id")
    walk.followed()
    walk.write(statements)
    assert walk.fails() == code
    assert ANEW.removeprefix("begin ") in CATALOGUE[code].hint
    walk.reset()
    walk.ends_equal()
    (name,) = {name for (name,) in walk.source.query(f"SHOW TABLES FROM {walk.name.schema} LIKE 't\\_%'")}
    table = f"{walk.name.schema}.{name}"
    found = walk.target.query(f"SELECT k, id & 0xFFFFFFFFFFF, v FROM {table} ORDER BY k")
    assert found == walk.source.query(f"SELECT k, id, v FROM {table} ORDER BY k")
