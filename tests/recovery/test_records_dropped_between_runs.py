"""The records of an incremental task are dropped between two processes of `unshard run`: the second one stands."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from support.task_runs import Command, TaskFiles, newest
from unshard.model.table import TableName
from unshard.testing.compare import assert_equal
from unshard.testing.throwaway_server import ThrowawayServer

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.recovery, pytest.mark.faults]


def test_it_begins_where_its_file_says_and_not_at_the_present_end(
    source: ThrowawayServer, target: ThrowawayServer, schema: str, tmp_path: Path
) -> None:
    made = f"CREATE DATABASE {schema}", f"CREATE TABLE {schema}.t (id INT PRIMARY KEY)"
    source.run(*made)
    target.run(*made)
    files = TaskFiles(tmp_path, schema, {"s1": source}, target, (schema,), keys={"task-mode": "incremental"}).write()

    def runs_on(these: TaskFiles, *flags: str) -> None:
        with Command(these, "", ":", *flags) as command:
            command.catch_up()
            command.interrupt()
            assert command.wait() == 0, command.text

    runs_on(files)
    target.run(f"DROP DATABASE meta_{schema}")
    place = newest(source)
    source.run(f"INSERT INTO {schema}.t VALUES (1)")
    with Command(files) as command:
        assert command.wait() != 0
        assert "SYNC-080" in command.text
    runs_on(replace(files, instance={"meta": {"binlog-name": place.file, "binlog-pos": place.offset}}).write())
    assert_equal([(source, TableName(schema, "t"))], (target, TableName(schema, "t")))
    target.run(f"DROP DATABASE meta_{schema}")
    runs_on(files.write(), "--remove-meta")
