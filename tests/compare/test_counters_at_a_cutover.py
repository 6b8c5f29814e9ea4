"""At a cut-over the target's AUTO_INCREMENT counters are raised to the sources': no id is given out twice."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from support.comparisons import merged_into_one
from support.task_runs import TaskFiles
from unshard.cli.compare_subject import CompareSubject, CompareWish, task_subject
from unshard.compare.counters import raise_target_counters
from unshard.config.files import load_files
from unshard.testing.throwaway_server import ThrowawayServer

pytestmark = pytest.mark.server

TABLE = "CREATE TABLE {} (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, v INT)"


@pytest.fixture
def files(
    source_server: ThrowawayServer, target_server: ThrowawayServer, schema: str, tmp_path: Path
) -> Iterator[TaskFiles]:
    """Rows of `t_1` and `t_2` were inserted and deleted at once, so that the target never saw them."""
    made = [
        statement
        for table, first in (("t_1", 1), ("t_2", 100))
        for statement in (
            TABLE.format(table),
            f"INSERT INTO {table} VALUES ({first}, 1)",
            f"INSERT INTO {table} VALUES ({first + 10}, 1)",
            f"DELETE FROM {table} WHERE id = {first + 10}",
        )
    ]
    with merged_into_one(source_server, target_server, schema, tmp_path, *made) as files:
        target_server.run(f"CREATE DATABASE {schema}", TABLE.format(f"{schema}.t"))
        yield with_keys(files, {})


def with_keys(files: TaskFiles, keys: dict[str, Any], **instance: Any) -> TaskFiles:
    """The task does not follow, so no checkpoint is asked for."""
    merged = {**files.keys, "task-mode": "full", **keys}
    return replace(files, keys=merged, instance={**files.instance, **instance}).write()


def subject_of(files: TaskFiles) -> CompareSubject:
    return task_subject(load_files(files.task_path, files.source_paths), CompareWish())


def test_the_next_row_of_the_target_gets_an_id_that_no_source_has_given_out(files: TaskFiles, schema: str) -> None:
    files.target.run(f"INSERT INTO {schema}.t VALUES (1, 1), (100, 1)")
    subject = subject_of(files)
    told = raise_target_counters(subject.plan())
    assert told == (f"{schema}.t: AUTO_INCREMENT raised from 101 to 111, the next value of the sources",)
    files.target.run(f"INSERT INTO {schema}.t (v) VALUES (2)")
    assert files.target.query(f"SELECT MAX(id) >= 111 FROM {schema}.t") == [(1,)]
    assert raise_target_counters(subject.plan()) == ()


def test_a_mapped_id_is_raised_with_the_bits_of_its_source(files: TaskFiles, schema: str) -> None:
    rule = {
        "schema-pattern": schema,
        "table-pattern": "t_*",
        "expression": "partition id",
        "source-column": "id",
        "target-column": "id",
        "arguments": ["1", "", "t_"],
    }
    mapped = with_keys(files, {"column-mappings": {"m": rule}}, **{"column-mapping-rules": ["m"]})
    (table,) = subject_of(mapped).plan().tables
    bits = {shard.table.name.table: shard.mapping.source_bits for shard in table.shards if shard.mapping is not None}
    assert bits["t_2"] > bits["t_1"] > 1 << 44
    files.target.run(f"INSERT INTO {schema}.t VALUES ({bits['t_1'] | 1}, 1), ({bits['t_2'] | 100}, 1)")
    (told,) = raise_target_counters(subject_of(mapped).plan())
    assert f"AUTO_INCREMENT raised from {bits['t_2'] | 101} to {bits['t_2'] | 111}, " in told


def test_what_the_target_refuses_is_told_with_the_statement(files: TaskFiles, schema: str) -> None:
    account = f"few_{schema}"
    files.target.run(
        f"INSERT INTO {schema}.t VALUES (100, 1)",
        f"CREATE USER {account}@'%'",
        f"GRANT SELECT ON {schema}.* TO {account}@'%'",
    )
    try:
        text = files.task_path.read_text()
        at = text.index("target-database")
        files.task_path.write_text(text[:at] + text[at:].replace("user: root", f"user: {account}", 1))
        (told,) = raise_target_counters(subject_of(files).plan())
    finally:
        files.target.run(f"DROP USER {account}@'%'")
    assert f"ALTER TABLE `{schema}`.`t` AUTO_INCREMENT = 111" in told
    assert "ALTER command denied" in told
