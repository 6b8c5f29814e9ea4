"""Temporary files of a step are in memory where it is large enough, and are removed unless a test has failed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from suites.catalogue import GATE, Step, Suite
from suites.memory import NEEDED, free, memory_folder, remove_left
from suites.run import ran

ROOT = Path(__file__).parents[2]
TESTS = """
import os, tempfile
from pathlib import Path

def test_where(tmp_path):
    Path("{told}").write_text(os.pathsep.join([tempfile.gettempdir(), str(tmp_path)]))
    assert {right}
"""


@pytest.mark.parametrize("right", [True, False])
@pytest.mark.parametrize(
    ("in_memory", "there", "chosen", "used"),
    [
        (True, NEEDED, "", True),
        (True, NEEDED - 1, "", False),
        (True, NEEDED, "elsewhere", False),
        (False, NEEDED, "", False),
    ],
)
def test_a_suite_that_may_uses_memory_where_enough_is_free(
    tmp_path: Path, in_memory: bool, there: int, chosen: str, used: bool, right: bool, capfd: pytest.CaptureFixture[str]
) -> None:
    memory, told, elsewhere = tmp_path / "memory", tmp_path / "told", tmp_path / "elsewhere"
    for folder in (memory, elsewhere):
        folder.mkdir()
    (tmp_path / "test_place.py").write_text(TESTS.format(told=told, right=right))
    suite = Suite("s", "", (Step("s", paths=(str(tmp_path / "test_place.py"),), jobs=0),), in_memory=in_memory)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("suites.run.RECORDS", tmp_path / "records")
        patch.setattr("suites.run.MEMORY", memory)
        patch.setattr("suites.run.free", {memory: there}.get)
        patch.setenv("PYTHONPATH", str(ROOT / "tests"))
        patch.delenv("PYTEST_XDIST_WORKER", raising=False)
        patch.delenv("TMPDIR", raising=False)
        if chosen:
            patch.setenv("TMPDIR", str(elsewhere))
        (result,) = ran([suite])
    assert result.good == right
    places = list(map(Path, told.read_text().split(os.pathsep)))
    assert [memory in place.parents for place in places] == [used, used]
    assert [elsewhere in (place, *place.parents) for place in places] == [bool(chosen), bool(chosen)]
    ours = places if used else places[:1]  # other runs of pytest remove folders of tests that are in the usual place
    assert [path.exists() for path in ours] == [not (used and right)] * len(ours)
    kept = f"what the tests have written is in {places[0]} until the next `make test`"
    assert (kept in capfd.readouterr().out) == (used and not right)


def test_what_an_earlier_step_has_left_is_removed_and_what_another_one_uses_is_not(tmp_path: Path) -> None:
    with memory_folder(tmp_path) as left:
        (left / "file").touch()
    remove_left(tmp_path)
    assert not left.exists()
    with memory_folder(tmp_path) as used, memory_folder(tmp_path) as beside:
        remove_left(tmp_path)
        assert sorted(tmp_path.iterdir()) == sorted([used, beside])


@pytest.mark.parametrize("error", [FileNotFoundError, PermissionError])
def test_a_folder_that_another_run_removes_or_another_user_has_is_passed_over(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: type[OSError]
) -> None:
    with memory_folder(tmp_path) as first, memory_folder(tmp_path) as second:
        pass
    refused, opened = next(tmp_path.glob("*")), os.open

    def refuse(path: Path, flags: int, *, dir_fd: int | None = None) -> int:
        if path == refused:
            raise error(path)
        return opened(path, flags, dir_fd=dir_fd)

    monkeypatch.setattr("suites.memory.os.open", refuse)
    remove_left(tmp_path)
    assert refused in (first, second)
    assert list(tmp_path.iterdir()) == [refused]


def test_what_cannot_be_kept_is_removed_before_it_is_seen_how_much_is_free(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a step that failed would keep later ones out of memory, and its files would stay for good."""
    with memory_folder(tmp_path) as left:
        pass
    seen: list[bool] = []

    def full(parent: Path) -> int:
        seen.append(left.exists())
        return 0

    monkeypatch.setattr("suites.run.MEMORY", tmp_path)
    monkeypatch.setattr("suites.run.free", full)
    monkeypatch.setattr("suites.run.RECORDS", tmp_path / "records")
    monkeypatch.delenv("TMPDIR", raising=False)
    list(ran([Suite("s", "", (Step("s", paths=(str(tmp_path / "none.py"),), jobs=0),), in_memory=True)]))
    assert seen == [False]


def test_no_more_is_free_than_the_disk_has_and_nothing_where_there_is_no_folder(tmp_path: Path) -> None:
    place = os.statvfs(tmp_path)
    assert 0 < free(tmp_path) <= place.f_blocks * place.f_frsize
    assert free(tmp_path / "missing") == 0


def test_the_gate_writes_into_memory() -> None:
    assert GATE.in_memory
