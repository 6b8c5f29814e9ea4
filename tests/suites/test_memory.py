"""Temporary files of a step are in memory where it is large enough, and are removed unless a test has failed."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from suites.catalogue import GATE, Step, Suite
from suites.memory import MEMORY, NEEDED, free, memory_folder
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
        patch.setattr("suites.run.free", lambda: there)
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
    assert [path.exists() for path in places] == [not (used and right)] * 2
    kept = f"what the tests have written is in {places[0]} until the next run"
    assert (kept in capfd.readouterr().out) == (used and not right)


def test_what_an_earlier_step_has_left_is_removed_and_what_another_one_uses_is_not(tmp_path: Path) -> None:
    with memory_folder(tmp_path) as left:
        (left / "file").touch()
    with memory_folder(tmp_path) as used:
        assert not left.exists()
        with memory_folder(tmp_path) as beside:
            assert (used.is_dir(), beside.is_dir()) == (True, True)
            assert sorted(tmp_path.iterdir()) == sorted([used, beside])


def test_what_is_free_is_no_more_than_the_folder_has() -> None:
    assert GATE.in_memory
    place = os.statvfs(MEMORY)
    assert 0 <= free() <= place.f_blocks * place.f_frsize
