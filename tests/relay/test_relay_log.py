"""The log's readers' side and its small files; no server."""

from __future__ import annotations

from pathlib import Path

import pytest

from unshard.errors import RelayError
from unshard.model.position import Location, Position
from unshard.relay.log import RelayLog
from unshard.relay.meta import SubDirectory, add_sub_directory, read_index, read_meta, write_meta
from unshard.relay.writer import MAGIC, RelayWriter


@pytest.fixture
def log(tmp_path: Path) -> RelayLog:
    sub = add_sub_directory(tmp_path, "0-1")
    for number in (999_998, 999_999, 1_000_000):
        (tmp_path / str(sub) / f"bin.{number}").write_bytes(b"x" * number if number < 10 else MAGIC)
    write_meta(tmp_path / str(sub), Location(Position("bin.1000000"), ""))
    return RelayLog(tmp_path)


def code_of(call: object, *arguments: object) -> str:
    with pytest.raises(RelayError) as raised:
        call(*arguments)  # type: ignore[operator]
    return raised.value.code


def test_files_come_by_number(log: RelayLog) -> None:
    assert log.files() == ("bin.999998", "bin.999999", "bin.1000000")
    assert log.next_file("bin.999999") == "bin.1000000"
    assert log.next_file("bin.1000000") is None
    assert log.size("bin.999999") == 4
    assert log.path("bin.999999").parent.name == "0-1.000001"


def test_hidden_files_are_not_the_relay_s(log: RelayLog) -> None:
    """NFS keeps a deleted file under such a name while somebody has it open."""
    log.path(".nfs000000000000000100000001").write_bytes(b"")
    assert log.files() == ("bin.999998", "bin.999999", "bin.1000000")


def test_a_missing_file_is_an_error(log: RelayLog) -> None:
    log.path("bin.999999").unlink()
    assert code_of(log.files) == "RELAY-016"


def test_a_log_that_was_never_begun(tmp_path: Path) -> None:
    assert code_of(RelayLog(tmp_path).files) == "RELAY-019"


def test_sub_directories_are_numbered(tmp_path: Path) -> None:
    for uuid in ("0-1", "0-2", "0-2"):
        add_sub_directory(tmp_path, uuid)
    assert read_index(tmp_path) == (SubDirectory("0-1", 1), SubDirectory("0-2", 2), SubDirectory("0-2", 3))


@pytest.mark.parametrize("text", ["0-1\n", "0-1.000001\n0-1.000003\n", "0-1.000002\n0-2.000001\n"])
def test_an_index_out_of_order(tmp_path: Path, text: str) -> None:
    (tmp_path / "server-uuid.index").write_text(text)
    assert code_of(read_index, tmp_path) == "RELAY-016"


def test_meta_is_read_as_it_was_written(tmp_path: Path) -> None:
    assert read_meta(tmp_path) is None
    location = Location(Position('odd"name.000001', 5_000_000_000), "0-1-7,2-3-4")
    write_meta(tmp_path, location)
    assert read_meta(tmp_path) == location


@pytest.mark.parametrize("text", ["", "binlog-name = 1", 'binlog-name = "a.1"\nbinlog-pos = "x"\nbinlog-gtid = ""'])
def test_broken_meta(tmp_path: Path, text: str) -> None:
    (tmp_path / "relay.meta").write_text(text)
    assert code_of(read_meta, tmp_path) == "RELAY-016"


def test_what_is_there_is_compared_and_a_hole_refused(tmp_path: Path) -> None:
    writer = RelayWriter(tmp_path, "bin.000001", 0)
    writer.write(4, memoryview(b"abcdef"))
    writer.write(4, memoryview(b"abcdefgh"))
    writer.write(8, memoryview(b"efgh"))
    assert code_of(writer.write, 4, memoryview(b"abcdeX")) == "RELAY-015"
    assert code_of(writer.write, 13, memoryview(b"i")) == "RELAY-004"
    assert writer.end == Position("bin.000001", 12)
    writer.rotate("bin.000002", "0-1-1")
    assert read_meta(tmp_path) == Location(Position("bin.000002"), "0-1-1")
    writer.close()
    assert (tmp_path / "bin.000001").read_bytes() == MAGIC + b"abcdefgh"


def test_a_next_file_that_cannot_be_opened_leaves_the_current_one(tmp_path: Path) -> None:
    writer = RelayWriter(tmp_path, "bin.000001", 0)
    writer.write(4, memoryview(b"abcd"))
    (tmp_path / "bin.000002").mkdir()
    assert code_of(writer.rotate, "bin.000002", "0-1-1") == "RELAY-014"
    assert writer.end == Position("bin.000001", 8)
    writer.sync("0-1-1")
    writer.close()
    assert read_meta(tmp_path) == Location(Position("bin.000001", 8), "0-1-1")
