"""The decision about a merged table of thousands of shards is quick: each source makes it again and again."""

from __future__ import annotations

import time
from dataclasses import replace

import pytest
from merged_world import NAME, A, behind, definition

from unshard.model.table import TableName
from unshard.shard.merged_parts import MergedShard, ShardId, StructureRequest
from unshard.shard.merged_table import MergedTable

RENAME = "CHANGE v w varchar(20) NOT NULL"


@pytest.mark.parametrize("comment", ["", " /* job {} */"])
def test_half_of_the_shards_have_met_a_statement(comment: str) -> None:
    before = definition()
    after, table = behind(before, RENAME), MergedTable(NAME).register(A, before, {"id", "v"})
    requests = [
        StructureRequest(str(number), after, "a rename", (f"ALTER TABLE `all`.`t` {RENAME}{comment.format(number)}",))
        for number in range(20_000)
    ]
    shards = {
        ShardId(f"s{number % 4}", TableName("s", f"t_{number}")): MergedShard(
            before, request=requests[number] if number % 2 else None
        )
        for number in range(len(requests))
    }
    table, began = replace(table, shards=shards), time.process_time()
    waits = table.evaluate().waits
    assert time.process_time() - began < 2.0, "in seconds of the processor"
    assert len(waits) == len(shards) // 2
