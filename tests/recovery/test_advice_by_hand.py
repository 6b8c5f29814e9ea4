"""Errors whose advice has the user do something by hand, followed to its end: the target equals the source."""

from __future__ import annotations

import pytest

from support.advice_walks import Walk
from support.foreign_dumps import METADATA
from support.operated_tasks import ctl
from support.task_runs import TaskRun
from unshard.error_catalogue import CATALOGUE
from unshard.testing.compare import assert_equal
from unshard.testing.tidb_server import TidbServer

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.recovery, pytest.mark.faults]


def test_the_columns_of_a_target_are_widened(walk: Walk) -> None:
    walk.target.run(
        f"CREATE DATABASE {walk.name.schema}", f"CREATE TABLE {walk.name} (id INT PRIMARY KEY, v VARCHAR(1))"
    )
    walk.write(["INSERT INTO {0} VALUES (3, 'too long')"])
    assert walk.fails() == "LOAD-006"
    assert "widen the column that the cause names on the target, then resume" in CATALOGUE["LOAD-006"].hint
    walk.target.run(f"ALTER TABLE {walk.name} MODIFY v VARCHAR(20)")
    walk.ends_equal()


def test_a_value_that_the_target_has_no_type_for_is_changed(walk: Walk) -> None:
    """A TIME above 838:59:59 on TiDB; elsewhere a column that is narrower in the target stands for it."""
    if isinstance(walk.target, TidbServer):
        walk.also("odd", "(id INT PRIMARY KEY, d TIME(6))")
        long, short = "838:59:59.999999", "12:00:00"
    else:
        odd = walk.also("odd", "(id INT PRIMARY KEY, d VARCHAR(9))")
        long, short = "too long", "short"
        walk.target.run(f"CREATE DATABASE {odd.schema}", f"CREATE TABLE {odd} (id INT PRIMARY KEY, d VARCHAR(5))")
    walk.write([f"INSERT INTO {{1}} VALUES (1, '{long}')"])
    assert walk.fails() == "LOAD-006"
    walk.write([f"UPDATE {{1}} SET d = '{short}'"])
    walk.reset()
    walk.ends_equal()


def test_a_dump_without_escapes(walk: Walk) -> None:
    """One of `dumpling --escape-backslash=false`: a file of it is loaded with altered texts before the other stops."""
    walk.write([r"INSERT INTO {0} VALUES (3, 'C:\\new'), (4, 'C:\\temp')"])
    dump = walk.files.folder / "by-dumpling"
    dump.mkdir()
    (dump / "metadata").write_text(METADATA)
    ((_, create),) = walk.source.query(f"SHOW CREATE TABLE {walk.name}")
    (dump / f"{walk.name.schema}.t-schema.sql").write_text(f"{create};\n")
    for number, rows in enumerate((r"(1,'a'),(2,'b'),(3,'C:\new')", r"(4,'C:\temp')")):
        text = f"/*!40101 SET NAMES binary*/;\nINSERT INTO `t` VALUES\n{rows};\n"
        (dump / f"{walk.name.schema}.t.00000000{number}.sql").write_text(text)
    keys = {"task-mode": "load", "loaders": {"own": {"dir": str(dump), "pool-size": 1}}}
    walk.change(keys=keys)
    assert walk.fails() == "LOAD-029"
    assert walk.target.query(f"SELECT v FROM {walk.name} WHERE id = 3") == [("C:\new",)]
    keys = {**keys, "mydumpers": {"own": {"extra-args": "--escape-backslash=false"}}}
    walk.change(keys=keys, instance={"mydumper-config-name": "own"})
    assert walk.fails() == "LOAD-019"
    walk.reset()
    TaskRun(walk.files, walk.spark).start().crew.join()
    assert_equal([(walk.source, walk.name)], (walk.target, walk.name))


def test_rows_that_a_statement_takes_away_are_deleted_by_hand(walk: Walk) -> None:
    walk.merges("id INT PRIMARY KEY, v VARCHAR(20)")
    walk.change(keys={**walk.files.keys, "shard-drop": "stop"})
    walk.source.run(f"INSERT INTO {walk.name}_2 VALUES (20, 'c'), (21, 'd')")
    walk.followed()
    walk.source.run(f"TRUNCATE TABLE {walk.name}_2")
    assert walk.fails() == "SHARD-023"
    walk.target.run(f"DELETE FROM {walk.name} WHERE id IN (20, 21)")
    ctl("binlog", "skip", str(walk.files.task_path), "-s", "s1")
    walk.ends_equal()
