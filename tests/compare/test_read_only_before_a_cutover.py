"""A source that was read-only before `cutover --read-only` is told, for another cut-over may have made it so."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.comparisons import merged_into_one
from support.cutovers import cut_over
from support.task_runs import TaskFiles
from unshard.cli import cutover as cli
from unshard.cli.compare_subject import CompareWish, task_subject
from unshard.cli.cutover import CutoverWish
from unshard.compare.cutover_report import NextCommands, report_form, report_lines
from unshard.compare.places import SourceWatch
from unshard.config.files import load_files
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.throwaway_server import ThrowawayServer

pytestmark = pytest.mark.server


@pytest.fixture
def files(
    source_server: MariadbServer,
    target_server: ThrowawayServer,
    schema: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[TaskFiles]:
    """A task that is always at the end of its source."""
    monkeypatch.setattr(SourceWatch, "applied", SourceWatch.newest)
    monkeypatch.chdir(tmp_path)
    made = ("CREATE TABLE t_1 (id INT PRIMARY KEY)",)
    with merged_into_one(source_server, target_server, schema, tmp_path, *made) as files:
        yield files
        source_server.run("SET GLOBAL read_only = OFF")


def back(files: TaskFiles) -> None:
    cli.cut_over(files.task_path, files.source_paths, CutoverWish(lambda text: True, back=True))


def test_a_cut_over_from_another_folder_tells_what_it_can_not_undo(
    files: TaskFiles, capsys: pytest.CaptureFixture[str]
) -> None:
    assert cut_over(files, lambda ranges: None, read_only=True) is not None
    state = files.folder / f"unshard-cutover-{files.name}.state.json"
    state.unlink()
    back(files)
    by_hand = "SET GLOBAL read_only = OFF"
    assert f"s1: is read-only; by hand: {by_hand}" in capsys.readouterr().out

    told: list[str] = []
    proof = cut_over(files, lambda ranges: None, told.append, read_only=True)
    assert proof is not None
    sides = task_subject(load_files(files.task_path, files.source_paths), CompareWish()).sides
    commands = NextCommands("task.yaml", "task.yaml")
    notes = report_form(proof, sides, commands)["notes"]
    for text in ("\n".join(told), "\n".join(notes), "\n".join(report_lines(proof, sides, commands))):
        assert "s1: was read-only before this cut-over" in text
        assert by_hand in text
    back(files)
    said = capsys.readouterr()
    assert "s1: was read-only before this cut-over" in said.err
    assert by_hand in said.err


def test_a_cut_over_that_made_it_read_only_says_nothing_of_that(files: TaskFiles) -> None:
    told: list[str] = []
    for _ in range(2):
        assert cut_over(files, lambda ranges: None, told.append, read_only=True) is not None
    assert "was read-only before" not in "\n".join(told)
