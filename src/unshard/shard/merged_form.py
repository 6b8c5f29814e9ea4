"""A merged table as JSON. Each structure is stored once, as the SHOW CREATE TABLE text of its product.

`old_rows`, `fitted`, `kept`, `copied`, `absent` and `has_dropped` are missing in records of earlier versions.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

from unshard.errors import Where
from unshard.model.stored_form import stamped, version_of
from unshard.model.table import TableName, name_form, name_of
from unshard.schema.definition import Dialect, TableDefinition
from unshard.schema.implied import Surroundings, complete_table
from unshard.schema.text import read_show_create, show_create
from unshard.shard.merged_parts import (
    MergedChange,
    MergedColumns,
    MergedShard,
    OldRows,
    Runner,
    ShardId,
    StructureRequest,
)
from unshard.shard.merged_table import MergedTable
from unshard.shard.sequence import Form

_ONE_NAME = "t"
"""The table name in stored structures: shards of one structure differ only in their names."""


def structure_text(table: TableDefinition, dialect: Dialect) -> str:
    """Return the text by which a definition is stored; `structure_of` reads it."""
    return show_create(table, _ONE_NAME, dialect)


@lru_cache(maxsize=1024)
def structure_of(text: str, dialect: Dialect) -> TableDefinition:
    """Return the definition in a stored text."""
    return complete_table(read_show_create(text, dialect), _ONE_NAME, Surroundings(dialect))


def to_form(merged: MergedTable) -> Form:
    """Return the merged table in a form ready for JSON; `from_form` reads it."""
    texts: dict[str, int] = {}
    known: dict[int, int] = {}  # by identity: `structure_of` gives the many shards of one structure one object

    def number(table: TableDefinition | None) -> int | None:
        if table is None:
            return None
        if id(table) not in known:
            known[id(table)] = texts.setdefault(structure_text(table, merged.dialect), len(texts))
        return known[id(table)]

    def forms(shards: Mapping[ShardId, MergedShard]) -> list[Form]:
        return [
            {
                "source": shard.source,
                "table": name_form(shard.table),
                "structure": number(state.structure),
                "dropped": sorted(state.dropped),
                "done": state.done,
                "old_rows": state.old_rows.value,
                "fitted": state.fitted,
                "kept": sorted(state.kept),
                "copied": [list(ddls) for ddls in state.copied],
                "request": _request_form(state.request, number(state.request.after)) if state.request else None,
            }
            for shard, state in sorted(shards.items())
        ]

    seen = {
        source: {
            "version": columns.version,
            "after": number(columns.after),
            "rules": dict(columns.rules),
            "leaving": sorted(columns.leaving),
        }
        for source, columns in merged.seen.items()
    }
    runner = merged.runner
    form = {
        "dialect": merged.dialect.value,
        "shards": forms(merged.shards),
        "absent": forms(merged.absent),
        "has_dropped": merged.has_dropped,
        "after": number(merged.after),
        "rules": dict(merged.rules),
        "leaving": dict(merged.leaving),
        "kept": sorted(merged.kept),
        "structure_version": merged.version,
        "seen": seen,
        "runner": {
            "source": runner.source,
            "begun": runner.begun,
            "shards": [[one.source, *name_form(one.table)] for one in runner.change.shards],
            "after": number(runner.change.after),
            "rules": dict(runner.change.rules),
            "barrier": runner.change.barrier,
            "dropped": list(runner.change.dropped),
            "old_rows": runner.change.old_rows.value,
        }
        if runner is not None
        else None,
    }
    return stamped({**form, "structures": list(texts)})


def from_form(target: TableName, form: Mapping[str, Any]) -> MergedTable:
    """Return the merged table of a stored form. Raises SyncError SYNC-075 for a form of a later version."""
    version_of(form, "the record of a merged table", Where(table=str(target)))
    dialect = Dialect(form["dialect"])

    def structure(number: int) -> TableDefinition:
        return structure_of(form["structures"][number], dialect)

    def shards_of(forms: Iterable[Form]) -> dict[ShardId, MergedShard]:
        shards = {}
        for one in forms:
            asked = one["request"]
            request = None
            if asked is not None:
                request = StructureRequest(
                    asked["id"],
                    structure(asked["after"]),
                    asked["barrier"],
                    tuple(asked["ddls"]),
                    asked["since"],
                    asked["forced"],
                    asked.get("fitted", False),
                    frozenset(asked.get("kept", ())),
                )
            shards[ShardId(one["source"], name_of(one["table"]))] = MergedShard(
                structure(one["structure"]),
                frozenset(one["dropped"]),
                request,
                one["done"],
                old_rows=OldRows(one.get("old_rows", "")),
                fitted=one.get("fitted", False),
                kept=frozenset(one.get("kept", ())),
                copied=tuple(map(tuple, one.get("copied", ()))),
            )
        return shards

    seen = {
        source: MergedColumns(one["version"], structure(one["after"]), one["rules"], frozenset(one["leaving"]))
        for source, one in form["seen"].items()
    }
    runs = form["runner"]
    runner = None
    if runs is not None:
        ids = tuple(ShardId(source, name_of(name)) for source, *name in runs["shards"])
        dropped, old_rows = tuple(runs["dropped"]), OldRows(runs.get("old_rows", ""))
        change = MergedChange(ids, structure(runs["after"]), runs["rules"], runs["barrier"], dropped, old_rows)
        runner = Runner(runs["source"], change, runs["begun"])
    after = structure(form["after"]) if form["after"] is not None else None
    return MergedTable(
        target,
        shards_of(form["shards"]),
        after,
        form["rules"],
        form["leaving"],
        form["structure_version"],
        seen,
        runner,
        dialect,
        kept=frozenset(form.get("kept", ())),
        absent=shards_of(form.get("absent", ())),
        has_dropped=form.get("has_dropped", False),
    )


def _request_form(request: StructureRequest, after: int | None) -> Form:
    return {
        "id": request.id,
        "after": after,
        "barrier": request.barrier,
        "ddls": list(request.ddls),
        "since": request.since,
        "forced": request.forced,
        "fitted": request.fitted,
        "kept": sorted(request.kept),
    }
