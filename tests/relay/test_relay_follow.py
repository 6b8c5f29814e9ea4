"""The relay's files are the source's, byte for byte, whatever is in them."""

from __future__ import annotations

import subprocess
import tomllib

import pytest
from rig import Rig, insert, newest

from support.waiting import wait_until
from unshard.model.position import Location, Position
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.programs import program

pytestmark = pytest.mark.server


def test_closed_files_are_those_of_the_source(rig: Rig, upstream: MariadbServer) -> None:
    unit = rig.relay()
    first = newest(upstream).file
    insert(upstream)
    upstream.run("ALTER TABLE d.t ADD COLUMN IF NOT EXISTS c INT")
    upstream.run("FLUSH BINARY LOGS")
    insert(upstream)
    upstream.run("FLUSH BINARY LOGS")

    names = rig.compare(unit)

    assert names[0] == first
    assert len(names) == 3
    read = [program("mariadb-binlog"), "--verify-binlog-checksum", str(unit.log.path(names[0]))]
    assert "INSERT INTO d.t" in subprocess.run(read, capture_output=True, text=True, check=True).stdout


def test_an_earlier_start_fetches_every_file_from_there(rig: Rig, upstream: MariadbServer) -> None:
    first = newest(upstream)
    insert(upstream)
    upstream.run("FLUSH BINARY LOGS")
    insert(upstream)

    names = rig.compare(rig.relay(Location(first)))

    assert names == (first.file, Position(first.file.rpartition(".")[0] + f".{first.number + 1:06d}").file)


def test_an_event_of_more_than_one_packet(rig: Rig, upstream: MariadbServer) -> None:
    unit = rig.relay()
    for size in (255_000, 300_000, 16_777_100, 16_777_215, 20_000_000, 33_554_430):
        insert(upstream, 1, size)

    assert rig.compare(unit)


def test_files_without_checksums(rig: Rig, upstream: MariadbServer) -> None:
    unit = rig.relay()
    try:
        insert(upstream)
        upstream.run("SET GLOBAL binlog_checksum = NONE")
        insert(upstream)
        upstream.run("FLUSH BINARY LOGS")
        insert(upstream, 1, 400_000)
        rig.catch_up(unit)
        unit.stop()
        again = rig.relay()
        insert(upstream)
        rig.catch_up(again)
    finally:
        upstream.run("SET GLOBAL binlog_checksum = CRC32")
    assert len(rig.compare(again)) == 4


def test_the_meta_file_tells_position_and_gtid(rig: Rig, upstream: MariadbServer) -> None:
    unit = rig.relay()
    insert(upstream)
    rig.catch_up(unit)
    unit.stop()

    meta = tomllib.loads((unit.log.folder / "relay.meta").read_text())

    at = unit.written
    assert (meta["binlog-name"], meta["binlog-pos"]) == (at.file, at.offset)
    assert meta["binlog-gtid"] == upstream.query("SELECT @@gtid_binlog_pos")[0][0]
    assert unit.status().stage == "Stopped"
    assert (rig.folder / "server-uuid.index").read_text() == f"0-{upstream.port}.000001\n"


def test_by_gtid_it_begins_with_the_file_that_holds_the_set(rig: Rig, upstream: MariadbServer) -> None:
    insert(upstream)
    upstream.run("FLUSH BINARY LOGS")
    file = newest(upstream).file
    insert(upstream, 3)
    gtid = upstream.query("SELECT @@gtid_binlog_pos")[0][0]
    insert(upstream, 3)
    upstream.run("FLUSH BINARY LOGS")
    insert(upstream)

    keys = {"enable-gtid": True, "relay-binlog-gtid": gtid}

    assert rig.compare(rig.relay(**keys))[0] == file


def test_a_new_start_goes_on_where_the_last_one_ended(rig: Rig, upstream: MariadbServer) -> None:
    unit = rig.relay()
    insert(upstream)
    rig.catch_up(unit)
    unit.stop()
    insert(upstream)
    upstream.run("FLUSH BINARY LOGS")
    insert(upstream)

    unit.start()
    rig.catch_up(unit)
    unit.stop()
    other = rig.relay()

    assert len(rig.compare(other)) == 2
    assert str(other.log.sub_directory).endswith(".000001")


def test_a_start_beyond_the_log_begins_a_fresh_set(rig: Rig, upstream: MariadbServer) -> None:
    unit = rig.relay()
    rig.catch_up(unit)
    unit.stop()
    for _ in range(2):
        upstream.run("FLUSH BINARY LOGS")
    file = newest(upstream).file

    later = rig.relay(Location(newest(upstream)))

    assert rig.compare(later) == (file,)
    assert str(later.log.sub_directory).endswith(".000002")


def test_a_start_in_the_file_that_was_not_begun_yet_goes_on(rig: Rig, upstream: MariadbServer) -> None:
    unit = rig.relay()
    insert(upstream)
    upstream.run("FLUSH BINARY LOGS")
    rig.catch_up(unit)
    unit.stop()
    at = unit.written
    unit.log.path(at.file).unlink()  # as if the relay had died between two files

    again = rig.relay(Location(Position(at.file)))

    assert at.file in rig.compare(again)
    assert str(again.log.sub_directory).endswith(".000001")


def test_waiting_ends_with_the_time_given(rig: Rig, upstream: MariadbServer) -> None:
    unit = rig.relay()
    rig.catch_up(unit)
    # MariaDB may write one more event of its own behind a rotation, so not the very next byte is asked for
    assert not unit.wait_for(Position(unit.written.file, unit.written.offset + 100_000), 0.05)


def test_the_stream_tells_where_the_log_of_the_source_ends(rig: Rig, upstream: MariadbServer) -> None:
    """No connection is made for it: the relay's own is enough."""
    unit = rig.relay(heartbeat_seconds=0.2)

    def seen() -> Position | None:
        found = unit.sighting()
        return found.location.position if found is not None else None

    wait_until(lambda: seen() == newest(upstream), "it tells the end")
    insert(upstream)
    wait_until(lambda: seen() == newest(upstream), "it tells the end after new rows")
    upstream.run("FLUSH BINARY LOGS")
    insert(upstream)
    wait_until(lambda: seen() == newest(upstream), "it tells the end in a new file")
    (first, *_) = unit.log.files()
    end, counted = newest(upstream), connections(upstream)
    for _ in range(20):
        found = unit.sighting()
        assert found is not None
        assert found.backlog_bytes(end) == 0
        assert found.backlog_bytes(Position(first)) > end.offset, "files between are counted"
    assert connections(upstream) == counted + 1, "that of this question"
    before = unit.sighting()
    assert before is not None
    wait_until(
        lambda: (found := unit.sighting()) is not None and found.seen > before.seen,
        "a heartbeat tells the same end again",
    )


def connections(server: MariadbServer) -> int:
    ((_, count),) = server.query("SHOW GLOBAL STATUS LIKE 'Connections'")
    return int(count)
