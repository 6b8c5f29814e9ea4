"""The example files are right, explain every key that acts, and fit together; the reference page is up to date."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from unshard.config.database import SecurityConfig
from unshard.config.files import load_source, load_task
from unshard.config.keys import section_of
from unshard.config.reference import render
from unshard.config.section import Later, NoEffect, Section
from unshard.config.source import SourceConfig
from unshard.config.subtask import plan_subtasks
from unshard.config.task import TaskConfig
from unshard.master.orders import sent_form

ROOT = Path(__file__).parents[2]
EXAMPLES = ROOT / "examples"
TIDB_PORT = 4000
INSTEAD = {
    "is-sharding",
    "mydumper",
    "loader",
    "mydumpers",
    "do-tables",
    "ignore-dbs",
    "loader-thread",
    "syncer-thread",
    "online-ddl-scheme",
}
"""Keys that an example names in passing or whose twin it shows."""


@pytest.mark.parametrize(("file", "sources"), [("minimal", 1), ("merge", 2), ("everything", 2)])
def test_each_example_is_a_working_task(file: str, sources: int) -> None:
    task = load_task(EXAMPLES / f"{file}.yaml")
    found = [load_source(EXAMPLES / f"source-{number}.yaml") for number in range(1, sources + 1)]
    subtasks = plan_subtasks(task, found)
    assert task.notices == ()
    assert task.target_database.port == TIDB_PORT
    assert [subtask.source_id for subtask in subtasks] == ["shop-01", "shop-02"][:sources]
    for config in (*subtasks, *(one.source for one in subtasks)):
        sent = sent_form(config)
        assert type(config).model_validate(sent) == config


@pytest.mark.parametrize("file", ["minimal", "merge", "everything"])
def test_no_example_leaves_anything_out_in_silence(file: str) -> None:
    task = load_task(EXAMPLES / f"{file}.yaml")
    found = [load_source(EXAMPLES / f"source-{number}.yaml") for number in (1, 2)]
    assert not any(one.filters for one in found)
    assert not task.filters
    assert not task.expression_filter
    assert not task.shard_mode or task.shard_drop == "stop"
    assert all(not one.ignore_tables for one in task.block_allow_list.values())


def test_settings_of_an_instance_count_over_those_it_names() -> None:
    task = load_task(EXAMPLES / "everything.yaml")
    subtasks = plan_subtasks(task, [load_source(EXAMPLES / f"source-{number}.yaml") for number in (1, 2)])
    assert subtasks[1].dumper.threads == 2
    assert subtasks[1].syncer.worker_count == 2
    assert "shard-wait-alert-seconds" not in sent_form(subtasks[0])  # a worker that knew it not would refuse


def acting_keys(model: type[Section]) -> set[str]:
    keys = set()
    for name, info in model.model_fields.items():
        choice = any(isinstance(mark, Later) and len(mark.neutral) < 2 for mark in info.metadata)
        if not choice and not any(isinstance(mark, NoEffect) for mark in info.metadata):
            keys.add(str(info.alias or name))
            inner = section_of(info.annotation)[1]
            keys |= acting_keys(inner) if inner is not None else set()
    return keys


def test_the_examples_show_every_key_that_acts() -> None:
    tls = {"security", "session"} | {name.replace("_", "-") for name in SecurityConfig.model_fields}
    for file, model in (("everything.yaml", TaskConfig), ("source-1.yaml", SourceConfig)):
        shown = set(re.findall(r"([a-z][a-z0-9_-]*)[:,\s]", (EXAMPLES / file).read_text()))
        assert acting_keys(model) - shown - INSTEAD == {"experimental"} & acting_keys(model) | (
            tls if model is SourceConfig else set()
        )


def test_the_reference_page_is_what_the_models_say() -> None:
    assert (ROOT / "docs" / "reference" / "config.md").read_text(encoding="utf-8") == render()


def test_the_reference_page_tells_unit_default_and_support() -> None:
    page = render()
    assert "| `checkpoint-flush-interval` | whole number (s), ≥ 1 | `30` | Longest time between two" in page
    assert (
        "| `source-id` | text | required | Name of the source in tasks and checkpoints. Example: `shop-01`. |" in page
    )
    assert re.search(r"\| `timezone` \|.*\*Not supported yet\*", page)
    assert re.search(r"\| `on-duplicate-logical` \|.*DM's old name: `on-duplicate`\. \|", page)
    assert "### `mysql-instances[].syncer`, `syncers.NAME`\n" in page
    columns = {line.replace("\\|", "").count("|") for line in page.splitlines() if line.startswith("|")}
    assert columns == {5}
