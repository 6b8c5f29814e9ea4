"""Which relay files go: none that a reader needs, and for space only as many as it takes."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from unshard.errors import RelayError
from unshard.model.position import Position
from unshard.relay.meta import SubDirectory, add_sub_directory
from unshard.relay.purge import GB, HOUR, Limits, LogFile, free_to_go, listed, plan, purge

NOW = 1_000_000.0


def file(number: int, folder: int = 1, uuid: str = "u", size: int = GB, age_hours: float = 0) -> LogFile:
    return LogFile(SubDirectory(uuid, folder), f"bin.{number:06d}", size, NOW - age_hours * HOUR)


def numbers(files: list[LogFile]) -> list[tuple[int, int]]:
    return [(one.folder.suffix, Position(one.name).number) for one in files]


def test_what_a_reader_needs_and_the_newest_file_never_go() -> None:
    files = [file(number) for number in range(1, 6)]
    assert numbers(free_to_go(files, {})) == [(1, 1), (1, 2), (1, 3), (1, 4)]
    assert numbers(free_to_go(files, {"u": [Position("bin.000004", 900), Position("bin.000003", 4)]})) == [
        (1, 1),
        (1, 2),
    ]
    assert free_to_go(files, {"u": [Position("bin.000001", 700)]}) == []


def test_files_of_another_server_go_by_its_own_readers() -> None:
    files = [file(7, 1, "old"), file(8, 1, "old"), file(1, 2, "new"), file(2, 2, "new")]
    assert numbers(free_to_go(files, {"new": [Position("bin.000001", 4)]})) == [(1, 7), (1, 8)]
    kept = free_to_go(files, {"old": [Position("bin.000008", 4)], "new": [Position("bin.000002", 4)]})
    assert numbers(kept) == [(1, 7), (2, 1)]


@pytest.mark.parametrize(
    ("free", "gone"), [(15 * GB, 0), (15 * GB - 1, 1), (13 * GB, 2), (0, 4)], ids=["enough", "a byte", "two", "all"]
)
def test_for_space_only_as_many_go_as_it_takes(free: int, gone: int) -> None:
    files = [file(number) for number in range(1, 5)]
    assert plan(files, Limits(remain_gb=15), now=NOW, free_bytes=free) == files[:gone]


def test_by_age_none_goes_behind_one_that_stays() -> None:
    files = [file(1, age_hours=5), file(2, age_hours=3), file(3, age_hours=1), file(4, age_hours=9)]
    assert plan(files, Limits(expires_hours=2), now=NOW, free_bytes=0) == files[:2]


def test_by_name_within_its_folder_and_all_of_older_ones() -> None:
    files = [file(7, 1), file(8, 1), file(1, 2), file(2, 2)]
    assert numbers(plan(files, Limits("bin.000002"), now=NOW, free_bytes=0)) == [(1, 7), (1, 8), (2, 1)]
    assert numbers(plan(files, Limits("bin.000008", "u.000001"), now=NOW, free_bytes=0)) == [(1, 7)]
    for wrong in (Limits, lambda name: Limits("bin.000001", name)):
        with pytest.raises(RelayError, match="RELAY-035"):
            wrong("x; rm")


def test_files_are_deleted_from_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / str(add_sub_directory(tmp_path, "u"))
    for number in (1, 2, 3):
        (folder / f"bin.{number:06d}").write_bytes(b"x")
        os.utime(folder / f"bin.{number:06d}", (NOW, NOW))
    needed = {"u": [Position("bin.000002", 4)]}
    gone = purge(tmp_path, needed, Limits("bin.000003"), now=NOW)
    assert numbers(gone) == [(1, 1)]
    assert numbers(listed(tmp_path)) == [(1, 2), (1, 3)]
    assert purge(tmp_path / "none", needed, Limits("bin.000003"), now=NOW) == []
