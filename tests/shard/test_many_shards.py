"""The decision about a merged table of many shards costs no square of them: each source makes it again and again."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import pytest
from merged_world import NAME, A, behind, definition

from unshard.model.table import TableName
from unshard.shard import merged_record, same_ddl, shard_structures
from unshard.shard.join import joined_structure
from unshard.shard.merged_parts import MergedShard, ShardId, StructureRequest, WaitKind
from unshard.shard.merged_record import distinct
from unshard.shard.merged_table import MergedTable
from unshard.shard.show_merged import merged_locks

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


def shards_of(number: int, state: MergedShard, first: MergedShard) -> dict[ShardId, MergedShard]:
    """So many shards of four sources; all but the first have this state and a request of their own."""
    names = [ShardId(f"s{place % 4}", TableName("s", f"t_{place:05}")) for place in range(number)]
    asked = {name: replace(state, request=replace(state.request, id=str(name))) for name in names if state.request}
    return {**asked, names[0]: first}


@pytest.mark.parametrize("kind", [WaitKind.STRUCTURES, WaitKind.VALUES])
def test_all_shards_but_one_wait_each_by_itself(
    kind: WaitKind, calls: Counter[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """The join of all with each of them is one join, and who has a column is the same for all of them."""
    before, number = definition(), 2_000
    own = behind(before, "ADD COLUMN c INT")
    wanted = own if kind is WaitKind.VALUES else behind(before, "ADD COLUMN c VARCHAR(9)")
    dropped = frozenset("c") if kind is WaitKind.VALUES else frozenset[str]()
    request = StructureRequest("", wanted, "", ("ALTER TABLE `all`.`t` ADD COLUMN c",))
    shards = shards_of(number, MergedShard(before, dropped, request), MergedShard(own))
    table = MergedTable(NAME, shards, own, {"c": "NULL"})

    def counted(*given: Any) -> Any:
        calls["joins"] += 1
        return joined_structure(*given)

    def text(shard: ShardId) -> str:
        calls["texts"] += 1
        return f"{shard.table} of {shard.source}"

    for module in (shard_structures, merged_record):
        monkeypatch.setattr(module, "joined_structure", counted)
    monkeypatch.setattr(ShardId, "__str__", text)
    calls.clear()
    waits = table.evaluate().waits
    assert {wait.kind for wait in waits.values()} == {kind}
    assert len(waits) == number - 1
    assert calls["joins"] <= 4
    assert calls["texts"] <= 2 * number
    assert calls["__eq__"] <= 50 * number
    (lock,) = merged_locks("task", table)
    assert lock["waitsFor"].endswith(f"; and {number - 11} more")
    assert lock["waitsFor"].count(": ") == 10
    assert lock["help"].endswith(f"; and {number - 11} more")
    assert len(lock["synced"]) == number - 1


def test_a_join_with_one_shard_is_that_of_all_shards_with_it() -> None:
    """Also in the order of their columns, whichever shard it is and whoever has the same structure."""
    base = definition()
    kinds = [base, behind(base, "ADD COLUMN c INT"), behind(base, "ADD COLUMN d INT"), behind(base, "ADD COLUMN e INT")]
    shards = {
        ShardId("s1", TableName("s", f"t_{place}")): MergedShard(kinds[kind])
        for place, kind in enumerate([3, 1, 1, 2, 0])
    }
    known = shard_structures.ShardStructures(shards, {}, base, {})
    for shard in shards:
        for kind in kinds:
            with_it = {**shards, shard: MergedShard(kind)}
            assert known.joined_with(shard, kind) == joined_structure(distinct(with_it), base, {})
        others = distinct({one: state for one, state in shards.items() if one != shard})
        assert sorted(map(id, known.without([shard]))) == sorted(map(id, others))
