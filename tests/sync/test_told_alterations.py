"""The log tells of values that a target stores in another form, also for what comes while a task runs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from unshard.model.table import Column, Table, TableName
from unshard.mysql.altered_values import TargetKind
from unshard.sync.batch.plan import TablePlan, TargetPlan
from unshard.sync.planning.told_alterations import ToldAlterations

NAME = TableName("shop", "orders")
COLUMNS = (
    Column("id", "int", "int(11)", False),
    Column("doc", "json", "json", True),
    Column("price", "double", "double", True),
    Column("v", "enum", "enum('a')", True, charset="eucjpms", collation="eucjpms_japanese_ci", members=("a",)),
    Column("made", "json", "json", True, generated=True),
)
MYSQL, TIDB, MARIADB = (
    TargetKind(from_mysql=True, json=True, tidb=False),
    TargetKind(from_mysql=True, json=True, tidb=True),
    TargetKind(from_mysql=True, json=False, tidb=False),
)


def plan(*columns: Column) -> TablePlan:
    return TablePlan(Table(NAME, columns), TargetPlan(0, NAME, (), ()))


def told(caplog: pytest.LogCaptureFixture) -> list[str]:
    found = [record.msg["columns"] for record in caplog.records if isinstance(record.msg, dict)]
    caplog.clear()
    return found


@pytest.mark.parametrize(
    ("kind", "columns"),
    [
        (MYSQL, ["doc", "v"]),
        (TIDB, ["doc", "price"]),
        (MARIADB, ["v", "price"]),
        (replace(MYSQL, from_mysql=False), ["v"]),
    ],
)
def test_each_column_once(kind: TargetKind, columns: list[str], caplog: pytest.LogCaptureFixture) -> None:
    log = ToldAlterations("s1", lambda name: None, lambda: kind)
    log.tell([plan(*COLUMNS)])
    assert told(caplog) == columns
    log.tell([plan(*COLUMNS)])
    assert told(caplog) == []


def test_a_column_that_comes_later(caplog: pytest.LogCaptureFixture) -> None:
    log = ToldAlterations("s1", lambda name: None, lambda: MYSQL)
    log.tell([plan(COLUMNS[0])])
    assert told(caplog) == []
    log.tell([plan(*COLUMNS[:2])])
    assert told(caplog) == ["doc"]


def test_a_target_that_keeps_the_values(caplog: pytest.LogCaptureFixture) -> None:
    """A LONGTEXT keeps the text of a document, utf8mb4 has one code for each character."""
    there = Table(
        NAME,
        (
            Column("DOC", "longtext", "longtext", True, charset="utf8mb4", collation="utf8mb4_bin"),
            Column("v", "varchar", "varchar(9)", True, charset="utf8mb4", collation="utf8mb4_bin", length=9),
        ),
    )
    ToldAlterations("s1", lambda name: there, lambda: MYSQL).tell([plan(*COLUMNS)])
    assert told(caplog) == []
