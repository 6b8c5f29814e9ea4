"""Shards of one table whose task merges them in optimistic mode, and what must be true then."""

from __future__ import annotations

from typing import Any

from support.shard_rig import ShardRig
from support.shard_runs import Shards
from support.task_runs import TaskRun
from support.waiting import wait_until
from unshard.errors import UnshardError

OPTIMISTIC = {"shard-mode": "optimistic"}


def optimistic(rig: ShardRig, sources: int = 2, **given: Any) -> Shards:
    return rig.shards(sources, keys={**OPTIMISTIC, **given.pop("keys", {})}, **given)


def columns(shards: Shards) -> list[str]:
    return [row[0] for row in shards.target.query(f"SHOW COLUMNS FROM {shards.merged}")]


def merged_rows(shards: Shards) -> dict[int, dict[str, Any]]:
    """The rows of the merged table by id, each by its columns."""
    while True:
        names = columns(shards)
        found = shards.target.query(f"SELECT * FROM {shards.merged}")
        if columns(shards) == names and all(len(row) == len(names) for row in found):  # not altered in between
            return {row[0]: dict(zip(names, row, strict=True)) for row in found}


def upstream_rows(shards: Shards) -> dict[int, dict[str, Any]]:
    """The rows of all shards by id, each by the columns of its own shard."""
    found = {}
    for source, table in shards.shards:
        names = [row[0] for row in shards.sources[source].query(f"SHOW COLUMNS FROM {shards.at(table)}")]
        for values in shards.sources[source].query(f"SELECT * FROM {shards.at(table)}"):
            row = dict(zip(names, values, strict=True))
            found[row["id"]] = row
    return found


def holds(shards: Shards, rules: dict[str, Any]) -> bool:
    """Whether the merged table has all rows of the shards, with the rule's value where a shard has no such column.

    A row that is older than its shard's DROP COLUMN may keep its value; `rules` names columns where none does.
    """
    there, rows = merged_rows(shards), upstream_rows(shards)
    if there.keys() != rows.keys():
        return False
    for id_, row in rows.items():
        if any(there[id_].get(name) != value for name, value in row.items()):
            return False
        if any(name not in row and name in there[id_] and there[id_][name] != value for name, value in rules.items()):
            return False
    return True


def in_step(run: TaskRun, shards: Shards, rules: dict[str, Any] | None = None) -> None:
    """Wait until all is read, nothing is held, and the merged table `holds` the rows of the shards."""
    shards.wait_in_step(run)

    def told() -> str:
        readings = "\n".join(map(str, run.crew.readings()))
        return f"{merged_rows(shards)}\n{upstream_rows(shards)}\n{readings}"

    wait_until(lambda: holds(shards, rules or {}), "the rows of all shards", told=told)


def has_columns(run: TaskRun, shards: Shards, *names: str) -> None:
    """Wait until the merged table has these columns."""

    def there() -> bool:
        if run.crew.errors:
            raise run.crew.errors[0]
        return columns(shards) == list(names)

    wait_until(there, f"columns {names}", told=lambda: str(columns(shards)))


def stopped(rig: ShardRig, shards: Shards) -> UnshardError:
    """The error that a run stops with."""
    found = TaskRun(shards.files(), rig.spark).start().error()
    assert isinstance(found, UnshardError)
    return found


def waits(run: TaskRun, shards: Shards, *words: str) -> None:
    """Wait until the status of a source says all of the words about what waits."""

    def told() -> str:
        return " ".join(one.waits_for for reading in run.crew.readings() if reading.sync for one in reading.sync.groups)

    wait_until(lambda: all(word in told() for word in words), f"{words} in the status", told=told)
