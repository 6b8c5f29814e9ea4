"""A sharding DDL, killed behind each of its durable writes in turn: it is resolved, and every change applied once."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from pathlib import Path

import pytest

from shard_runs import Shards
from task_runs import Command
from unshard.model.table import TableName
from unshard.testing.binlog_count import exactly_once, row_events
from unshard.testing.servers import MariadbServer

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.recovery]

PLACES = (
    "sync-move-after:2",
    "shard-report-after",
    "ddl-execute-after",
    "sync-close-after:1",
    "sync-chunk-commit:1",
    "sync-close-after:2",
)


def test_every_death_leaves_every_change_applied_once(
    source: MariadbServer, target: MariadbServer, tmp_path: Path
) -> None:
    shards = Shards("life", {"s1": source}, target, tmp_path, syncer={"compact": False, "batch": 2})
    files = shards.files()
    with Command(files) as command:
        command.catch_up()
        command.interrupt()
        assert command.wait() == 0, command.text
    for number, place in enumerate(PLACES):
        shards.alter("s1", 0, f"ADD COLUMN c_{number} INT")
        for row in range(5):
            shards.insert("s1", 0, 10 * (number + 1) + row, **{f"c_{number}": str(row)})
        shards.alter("s1", 1, f"ADD COLUMN c_{number} INT")
        shards.update("s1", 1, 0, f"c_{number} = {number}")
        with Command(files, crash_at=place) as command:
            command.dies(place)
    with Command(files) as command:
        shards.wait_applied()
        command.interrupt()
        assert command.wait() == 0, command.text
    assert shards.merged_rows() == shards.expected()
    merged = TableName("life_all", "t")
    done = row_events(source, [TableName("life_s", f"t_{table}") for table in (0, 1)])
    wanted = sum((Counter({replace(event, table=merged): times}) for event, times in done.items()), Counter())
    against = exactly_once(wanted, row_events(target, [merged]))
    assert not against, "\n".join(against)
