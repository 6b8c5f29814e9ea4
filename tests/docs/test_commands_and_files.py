"""What the pages show can be used as it stands: files load, commands parse, tables of the target are named right."""

from __future__ import annotations

import re
import shlex
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.core import TyperGroup
from typer.main import get_group

from unshard.cli.app import app
from unshard.config.files import load_access, load_process, load_source, load_task
from unshard.config.master import MasterConfig
from unshard.config.subtask import plan_subtasks
from unshard.config.worker import WorkerConfig
from unshard.target.meta import MetaTables

ROOT = Path(__file__).parents[2]
PAGES = sorted({ROOT / "README.md", *(ROOT / "docs").rglob("*.md")} - {*(ROOT / "docs" / "adr").glob("*.md")})
FENCE = re.compile(r"^( *)```(\w*)\n(.*?)^ *```$", re.MULTILINE | re.DOTALL)
TUTORIAL = ROOT / "docs" / "tutorial" / "first-migration.md"


def blocks(page: Path, language: str) -> list[str]:
    found = FENCE.findall(page.read_text(encoding="utf-8"))
    return [re.sub(rf"^{indent}", "", text, flags=re.MULTILINE) for indent, kind, text in found if kind == language]


def all_blocks(language: str) -> list[Any]:
    return [
        pytest.param(text, id=f"{page.stem}-{number}")
        for page in PAGES
        for number, text in enumerate(blocks(page, language), 1)
    ]


def commands() -> list[Any]:
    return [
        pytest.param(line, id=f"{page.stem}: {line[:50]}")
        for page in PAGES
        for text in blocks(page, "sh")
        for line in text.splitlines()
        if re.match(r"(\S*/)?unshard ", line)
    ]


@pytest.fixture(autouse=True)
def passwords(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SOURCE_PASSWORD", "s")
    monkeypatch.setenv("TARGET_PASSWORD", "t")


@pytest.mark.parametrize("text", all_blocks("yaml"))
def test_files_load_without_a_notice(text: str, tmp_path: Path) -> None:
    path = tmp_path / "file.yaml"
    path.write_text(text)
    keys = yaml.safe_load(text)
    if "tokens" in keys:
        assert load_access(path).tokens
    elif "master-addr" in keys:
        assert load_process(MasterConfig, path, {}).notices == ()
    elif "worker-addr" in keys:
        assert load_process(WorkerConfig, path, {}).notices == ()
    else:
        form = load_source(path) if "source-id" in keys else load_task(path)
        assert form.notices == ()


@pytest.mark.parametrize("line", commands())
def test_commands_parse(line: str) -> None:
    _, *words = shlex.split(line.partition(" > ")[0], comments=True)
    group = get_group(app)
    name, command, rest = group.resolve_command(group.make_context("unshard", list(words)), words)
    assert command is not None
    context = command.make_context(name or "", rest)
    while isinstance(command, TyperGroup) and (left := [*context._protected_args, *context.args]):
        name, command, rest = command.resolve_command(context, left)
        assert command is not None
        context = command.make_context(name or "", rest, parent=context)


def test_a_command_that_does_not_parse_is_noticed() -> None:
    group = get_group(app)
    with pytest.raises(Exception, match="sauce") as raised:
        group.commands["run"].make_context("run", ["task.yaml", "--sauce", "s.yaml"])
    assert type(raised.value).__name__ == "NoSuchOption"


def test_the_files_of_the_tutorial_fit_together(tmp_path: Path) -> None:
    paths = []
    for number, text in enumerate(blocks(TUTORIAL, "yaml")):
        paths.append(tmp_path / f"{number}.yaml")
        paths[-1].write_text(text)
    *sources, task = paths
    subtasks = plan_subtasks(load_task(task), [load_source(path) for path in sources])
    assert [subtask.source_id for subtask in subtasks] == ["shop-01", "shop-02"]


def test_the_tables_named_in_queries_are_those_of_a_task() -> None:
    meta = MetaTables("dm_meta", "shop")
    tables = (meta.checkpoint, meta.batch, meta.partition, meta.ledger, meta.left_out, meta.upstream)
    real = {name.replace("`", "") for name in tables}
    named = {name for page in PAGES for text in blocks(page, "sql") for name in re.findall(r"dm_meta\.\w+", text)}
    assert named
    assert named <= real


def test_every_page_is_reached_from_the_list() -> None:
    listed = set(re.findall(r"\]\(([\w/-]+\.md)", (ROOT / "docs" / "README.md").read_text(encoding="utf-8")))
    pages = {path.relative_to(ROOT / "docs").as_posix() for path in (ROOT / "docs").glob("*/*.md")}
    assert {page for page in pages if not page.startswith("adr/")} - listed == set()


def test_the_first_screen_of_the_readme_is_one() -> None:
    first = (ROOT / "README.md").read_text(encoding="utf-8").split("\n## ")[0].splitlines()
    assert len(first) <= 40
    assert max(map(len, first)) <= 120
