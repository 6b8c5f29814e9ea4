"""Tools beside which we are measured: one whose own threads deadlock is begun again, any other failure is told."""

from __future__ import annotations

import stat
from pathlib import Path

import pytest
from bench.peers import PeerFailedError, _without_deadlock


def program(folder: Path, says: str, failures: int) -> list[str]:
    """Return the command of a program that fails so many times, with these words."""
    file = folder / "peer"
    count = folder / "count"
    file.write_text(
        f'#!/bin/sh\necho >>{count}\n[ $(wc -l <{count}) -gt {failures} ] || {{ echo "{says}" >&2; exit 1; }}\n'
    )
    file.chmod(file.stat().st_mode | stat.S_IXUSR)
    return [str(file)]


def test_a_deadlock_of_the_tools_own_threads_is_no_result(tmp_path: Path) -> None:
    assert _without_deadlock(program(tmp_path, "Deadlock found when trying to get lock", 3)) > 0


@pytest.mark.parametrize(("says", "runs"), [("Deadlock found when trying to get lock", 4), ("Access denied", 1)])
def test_another_failure_is(tmp_path: Path, says: str, runs: int) -> None:
    with pytest.raises(PeerFailedError, match=says):
        _without_deadlock(program(tmp_path, says, 9))
    assert len((tmp_path / "count").read_text().splitlines()) == runs
