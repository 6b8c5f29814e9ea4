"""The decision about a merged table of many shards costs no square of them: each source makes it again and again."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from merged_world import NAME, A, behind, definition

from unshard.model.table import TableName
from unshard.shard import same_ddl
from unshard.shard.merged_parts import MergedShard, ShardId, StructureRequest
from unshard.shard.merged_table import MergedTable

RENAME = "CHANGE v w varchar(20) NOT NULL"


@pytest.fixture
def calls(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """Counts of the comparisons of two shards, and of the statements that are taken apart."""
    found: Counter[str] = Counter()

    def counted(owner: Any, name: str) -> None:
        before = getattr(owner, name)

        def count(*given: Any, **more: Any) -> Any:
            found[name] += 1
            return before(*given, **more)

        monkeypatch.setattr(owner, name, count)

    counted(ShardId, "__eq__")
    counted(same_ddl, "tokens")
    return found


@pytest.mark.parametrize("comment", ["", " /* job {} */"])
def test_half_of_the_shards_have_met_a_statement(comment: str, calls: Counter[str]) -> None:
    before = definition()
    after, table = behind(before, RENAME), MergedTable(NAME).register(A, before, {"id", "v"})
    requests = [
        StructureRequest(str(number), after, "a rename", (f"ALTER TABLE `all`.`t` {RENAME}{comment.format(number)}",))
        for number in range(2_000)
    ]
    shards = {
        ShardId(f"s{number % 4}", TableName("s", f"t_{number}")): MergedShard(
            before, request=requests[number] if number % 2 else None
        )
        for number in range(len(requests))
    }
    table = replace(table, shards=shards)
    calls.clear()
    waits = table.evaluate().waits
    assert len(waits) == len(shards) // 2
    assert calls["__eq__"] <= 50 * len(shards), "sorting them takes 15 of these"
    assert calls["tokens"] <= 2 * len(shards)
