"""`unshard status`: what is on record in the target, before the first checkpoint, with an open batch, by table."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.row_batches import BEGIN, END, Target
from support.task_runs import TaskFiles
from unshard.cli.status import show_status
from unshard.config.files import load_files
from unshard.model.position import Location
from unshard.target import receipts
from unshard.target.checkpoint import save_checkpoint
from unshard.target.meta import MetaTables
from unshard.target.row_counts import add_left_out, add_to_ledger
from unshard.testing.mariadb_server import MariadbServer

COUNTS = {"decoded": 9, "filtered": 4, "compacted": 2, "inserted": 1, "updated": 1, "deleted": 1, "missing": 1}


@pytest.fixture
def place(target_server: MariadbServer, schema: str) -> Iterator[Target]:
    found = Target(target_server, schema, {})
    yield found
    found.connection.close()


@pytest.fixture
def files(source_server: MariadbServer, place: Target, tmp_path: Path) -> TaskFiles:
    keys = {"meta-schema": place.schema}
    return TaskFiles(tmp_path, "task", {"s1": source_server}, place.server, ("d",), keys=keys).write()


def shown(files: TaskFiles, **how: bool) -> str:
    lines: list[str] = []
    show_status(
        load_files(files.task_path, files.source_paths).subtasks,
        lines.append,
        **{"tables": False, "as_json": False, **how},
    )
    return "\n".join(lines)


def fill(place: Target) -> None:
    batch = receipts.OpenBatch(1, BEGIN, END, {})
    receipts.open_batch(place.connection, place.meta, "s1", place.claim.epoch, batch, 1)
    with place.connection.cursor() as cursor:
        save_checkpoint(cursor, place.meta, "s1", Location(BEGIN, "0-1-5"), {})
        add_to_ledger(cursor, place.meta, "s1", {"d.t": COUNTS})
        add_left_out(cursor, place.meta, "s1", "changes", {("d.t", "filters.no-delete"): 4})
        add_left_out(cursor, place.meta, "s1", "events", {("other.t", "block-allow-list"): 1234})


def test_before_the_first_start_and_checkpoint(files: TaskFiles, place: Target) -> None:
    assert "s1  no checkpoint yet" in shown(files, tables=True)
    place.server.run(f"DROP DATABASE {place.schema}")
    assert "s1  no checkpoint yet" in shown(files)
    assert json.loads(shown(files, as_json=True))["sources"][0]["subTaskStatus"][0]["sync"] is None


def test_every_table_and_rule_in_text(files: TaskFiles, place: Target) -> None:
    fill(place)
    text = shown(files, tables=True)
    assert f"s1  at {BEGIN}, saved " in text
    assert "backlog" in text
    assert f"open batch: {BEGIN} to {END}" in text
    lines = [line.split() for line in text.splitlines()]
    assert ["table", *COUNTS] in lines
    assert ["d.t", "9", "4", "2", "1", "1", "1", "1"] in lines
    assert ["d.t", "filters.no-delete", "4"] in lines
    assert ["other.t", "block-allow-list", "1,234"] in lines
    assert "filters.no-delete" not in shown(files)


def test_the_names_of_dm_in_json(files: TaskFiles, place: Target) -> None:
    fill(place)
    (source,) = json.loads(shown(files, as_json=True))["sources"]
    assert source["sourceStatus"] == {"source": "s1"}
    sync: dict[str, Any] = source["subTaskStatus"][0]["sync"]
    assert sync["syncerBinlog"] == f"({BEGIN.file}, {BEGIN.offset})"
    assert sync["syncerBinlogGtid"] == "0-1-5"
    assert sync["masterBinlog"].startswith("(")
    assert sync["totalRows"] == 9
    assert sync["tables"] == [{"table": "d.t", **COUNTS, "filteredByRule": {"filters.no-delete": 4}}]
    assert sync["passedOver"] == [{"table": "other.t", "rule": "block-allow-list", "rowEvents": 1234}]


def test_tables_of_an_earlier_version_are_read_as_they_are(files: TaskFiles, place: Target) -> None:
    fill(place)
    meta = MetaTables(place.schema, "task")
    place.server.run(f"ALTER TABLE {meta.ledger} DROP COLUMN filtered", f"DROP TABLE {meta.left_out}")
    (source,) = json.loads(shown(files, as_json=True))["sources"]
    sync = source["subTaskStatus"][0]["sync"]
    assert sync["tables"][0]["filtered"] == 0
    assert sync["passedOver"] == []
