"""Which relay files go: none that a reader needs, and for space only as many as it takes."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from unshard.errors import RelayError
from unshard.model.position import Position
from unshard.relay.meta import SubDirectory, add_sub_directory
from unshard.relay.purge import GB, HOUR, LogFile, Purged, PurgeLimits, PurgeReader, listed, plan, purge

NOW = 1_000_000.0


def file(number: int, folder: int = 1, uuid: str = "u", size: int = GB, age_hours: float = 0) -> LogFile:
    return LogFile(SubDirectory(uuid, folder), f"bin.{number:06d}", size, NOW - age_hours * HOUR)


def numbers(files: Sequence[LogFile]) -> list[tuple[int, int]]:
    return [(one.folder.suffix, Position(one.name).number) for one in files]


def planned(files: list[LogFile], limits: PurgeLimits, free: int = 0, **places: str) -> Purged:
    """`places`: by task, `uuid:number` of the file that it reads."""
    readers: dict[str, list[PurgeReader]] = {}
    for task, place in places.items():
        uuid, _, number = place.partition(":")
        readers.setdefault(uuid, []).append(PurgeReader(task, Position(f"bin.{int(number):06d}", 900)))
    return plan(files, readers, limits, now=NOW, free_bytes=free)


def test_what_a_reader_needs_and_the_newest_file_never_go() -> None:
    files, all_of_them = [file(number) for number in range(1, 6)], PurgeLimits("bin.000009")
    assert numbers(planned(files, all_of_them).gone) == [(1, 1), (1, 2), (1, 3), (1, 4)]
    two = planned(files, all_of_them, late="u:3", ahead="u:4")
    assert numbers(two.gone) == [(1, 1), (1, 2)]
    assert two.told() == (
        "2 files (u.000001/bin.000001 to u.000001/bin.000002) deleted, 2.1 GB; "
        "3 files (u.000001/bin.000003 to u.000001/bin.000005) kept: task late reads from bin.000003:900 on"
    )
    assert planned(files, all_of_them, t="u:1").gone == ()
    assert planned(files, PurgeLimits("bin.000002"), t="u:1").told() == (
        "nothing is deleted; 1 file (u.000001/bin.000001) kept: task t reads from bin.000001:900 on"
    )
    assert planned(files[:1], all_of_them).told().endswith("kept: the relay writes to it")
    assert planned(files, PurgeLimits("bin.000001")).told() == "nothing is deleted: the relay log has no such files"


def test_files_of_another_server_go_by_its_own_readers() -> None:
    files = [file(7, 1, "old"), file(8, 1, "old"), file(1, 2, "new"), file(2, 2, "new")]
    assert numbers(planned(files, PurgeLimits("bin.000009"), t="new:1").gone) == [(1, 7), (1, 8)]
    assert numbers(planned(files, PurgeLimits("bin.000009"), t="new:2").gone) == [(1, 7), (1, 8), (2, 1)]


@pytest.mark.parametrize("old", [(), (8,)])
def test_a_reader_whose_place_is_in_no_file_goes_on_in_the_newest_folder(old: tuple[int, ...]) -> None:
    """In a fail-over it is on record in the old server's log until it has a place in the new one's."""
    files = [file(number, 1, "old") for number in old] + [file(number, 2, "new") for number in (1, 2, 3)]
    for limits in (PurgeLimits(remain_gb=9), PurgeLimits("bin.000009")):
        made = planned(files, limits, t="old:9")
        assert numbers(made.gone) == [(1, number) for number in old]
    assert made.told().endswith(
        "3 files (new.000002/bin.000001 to new.000002/bin.000003) kept: task t reads from bin.000009:900 on"
    )
    assert numbers(planned(files, PurgeLimits("bin.000009"), t="new:9").gone) == numbers(files[:-1])


def test_a_reader_in_the_log_of_an_earlier_server_comes_to_the_later_ones_yet() -> None:
    files = [file(7, 1, "old"), file(8, 1, "old"), file(1, 2, "new"), file(2, 2, "new"), file(9, 3, "old")]
    late = planned(files, PurgeLimits("bin.000099"), late="old:8", t="new:2")
    assert numbers(late.gone) == [(1, 7)]
    assert late.reader is not None
    assert late.reader.task == "late"
    assert numbers(planned(files, PurgeLimits("bin.000099"), t="old:9").gone) == [(1, 7), (1, 8), (2, 1), (2, 2)]


@pytest.mark.parametrize(
    ("free", "gone"), [(15 * GB, 0), (15 * GB - 1, 1), (13 * GB, 2), (0, 4)], ids=["enough", "a byte", "two", "all"]
)
def test_for_space_only_as_many_go_as_it_takes(free: int, gone: int) -> None:
    files = [file(number) for number in range(1, 6)]
    assert planned(files, PurgeLimits(remain_gb=15), free).gone == tuple(files[:gone])
    assert planned(files, PurgeLimits(remain_gb=15), free, t="u:3").gone == tuple(files[: min(gone, 2)])


def test_by_age_none_goes_behind_one_that_stays() -> None:
    files = [file(1, age_hours=5), file(2, age_hours=3), file(3, age_hours=1), file(4, age_hours=9)]
    assert planned(files, PurgeLimits(expires_hours=2)).gone == tuple(files[:2])
    assert planned(files, PurgeLimits(before_time=NOW - 4 * HOUR)).gone == tuple(files[:1])
    assert planned(files, PurgeLimits("bin.000002", before_time=NOW - 2 * HOUR)).gone == tuple(files[:2])


def test_by_name_within_its_folder_and_all_of_older_ones() -> None:
    files = [file(7, 1), file(8, 1), file(1, 2), file(2, 2)]
    assert numbers(planned(files, PurgeLimits("bin.000002")).gone) == [(1, 7), (1, 8), (2, 1)]
    assert numbers(planned(files, PurgeLimits("bin.000008", "u.000001")).gone) == [(1, 7)]
    for wrong in (PurgeLimits, lambda name: PurgeLimits("bin.000001", name)):
        with pytest.raises(RelayError, match="RELAY-035"):
            wrong("x; rm")


def test_files_are_deleted_from_the_folder(tmp_path: Path) -> None:
    folder = tmp_path / str(add_sub_directory(tmp_path, "u"))
    for number in (1, 2, 3):
        (folder / f"bin.{number:06d}").write_bytes(b"x")
        os.utime(folder / f"bin.{number:06d}", (NOW, NOW))
    readers = {"u": [PurgeReader("t", Position("bin.000002", 4))]}
    with pytest.raises(RelayError, match="RELAY-035"):
        purge(
            tmp_path, readers, PurgeLimits("bin.000003", "u.000007"), now=NOW
        )  # by its number it would mean all files
    assert numbers(purge(tmp_path, readers, PurgeLimits("bin.000003"), now=NOW).gone) == [(1, 1)]
    assert numbers(listed(tmp_path)) == [(1, 2), (1, 3)]
    assert purge(tmp_path / "none", readers, PurgeLimits("bin.000003"), now=NOW) == Purged()
