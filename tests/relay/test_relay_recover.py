"""A relay file that a crash tore, or a disk damaged, is mended from the source."""

from __future__ import annotations

import os
import random
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from rig import Rig, insert

from unshard.model.position import Location, Position
from unshard.mysql.flavour import Flavour, Server
from unshard.relay.gtids import GtidTracker
from unshard.relay.meta import write_meta
from unshard.relay.recovery import Tail, recover
from unshard.testing.mariadb_server import MariadbServer

pytestmark = pytest.mark.server

SERVER = Server(Flavour.MARIADB, (10, 11, 0), "10.11.0-MariaDB", 1, "0-1")


@pytest.fixture(scope="module")
def whole(upstream: MariadbServer) -> bytes:
    """A closed binlog file of the server: 30 small transactions and its ROTATE event."""
    upstream.run("FLUSH BINARY LOGS")
    path = upstream.binlog_files()[-1]
    insert(upstream, 30, 200)
    upstream.run("FLUSH BINARY LOGS")
    return path.read_bytes()


def boundaries(data: bytes) -> list[int]:
    """Offsets of all event ends, by the lengths in the headers."""
    ends = [4]
    while ends[-1] < len(data):
        ends.append(ends[-1] + int.from_bytes(data[ends[-1] + 9 : ends[-1] + 13], "little"))
    return ends


@pytest.mark.faults
def test_a_file_cut_anywhere_keeps_its_whole_events(whole: bytes, tmp_path: Path) -> None:
    ends = boundaries(whole)
    path = tmp_path / "mysql-bin.000001"
    for size in range(0, len(whole), 7):
        path.write_bytes(whole[:size])
        kept = max((end for end in ends[1:] if end <= size), default=0)

        tail = recover(path, GtidTracker(SERVER), 0)

        assert (tail.end, tail.dropped) == (kept, size - kept)
        assert path.read_bytes() == whole[:kept]


@pytest.mark.faults
def test_a_changed_byte_anywhere_is_found(whole: bytes, tmp_path: Path) -> None:
    ends = boundaries(whole)
    path = tmp_path / "mysql-bin.000001"
    for at in range(0, len(whole), 5):
        harmed = bytearray(whole)
        harmed[at] ^= 1 << at % 8
        path.write_bytes(harmed)

        tail = recover(path, GtidTracker(SERVER), 0)

        kept = max(end for end in ends if end <= at) if at >= ends[1] else 0
        assert tail.end == kept, f"bit {at % 8} of byte {at}"
        assert tail.reason


def test_a_whole_file_tells_its_gtids_and_the_next_file(whole: bytes, tmp_path: Path, upstream: MariadbServer) -> None:
    path = tmp_path / "mysql-bin.000001"
    path.write_bytes(whole)
    gtids = GtidTracker(SERVER)

    tail = recover(path, gtids, 0)

    newest = upstream.binlog_files()[-1].name
    assert tail == Tail(len(whole), next_file=newest)
    assert gtids.text == upstream.query("SELECT @@gtid_binlog_pos")[0][0]
    assert recover(path, GtidTracker(SERVER), 0) == tail


@pytest.mark.parametrize("closed", [True, False])
def test_a_file_that_another_follows_is_durable_before(
    whole: bytes, closed: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A killed process may have left it in the page cache only, and nobody looks at it again."""
    path = tmp_path / "mysql-bin.000001"
    path.write_bytes(whole if closed else whole[: boundaries(whole)[-2]])
    synced: list[int] = []
    for name in ("fsync", "fdatasync"):
        real = getattr(os, name)

        def spied(handle: int, real: Callable[[int], None] = real) -> None:
            synced.append(os.fstat(handle).st_ino)
            real(handle)

        monkeypatch.setattr(os, name, spied)

    tail = recover(path, GtidTracker(SERVER), 0)

    assert (tail.next_file is not None) == closed
    assert synced == ([path.stat().st_ino, tmp_path.stat().st_ino] if closed else [])


@pytest.fixture
def without_checksums(upstream: MariadbServer) -> Iterator[None]:
    upstream.run("SET GLOBAL binlog_checksum = NONE")
    yield
    upstream.run("SET GLOBAL binlog_checksum = CRC32")


@pytest.mark.usefixtures("without_checksums")
def test_a_file_without_checksums_is_trusted_as_far_as_it_was_synced(upstream: MariadbServer, tmp_path: Path) -> None:
    """Its events have the right lengths and places also where a power failure has lost what is in them."""
    written = upstream.binlog_files()[-1]
    insert(upstream, 30, 200)
    upstream.run("FLUSH BINARY LOGS")
    data, path = written.read_bytes(), tmp_path / "mysql-bin.000001"
    ends = boundaries(data)
    torn = bytearray(data)
    torn[ends[-4] + 60 : ends[-3]] = bytes(ends[-3] - ends[-4] - 60)
    for durable, kept in ((len(data), len(data)), (ends[9], ends[9]), (0, 0)):
        path.write_bytes(data if durable == len(data) else torn)

        tail = recover(path, GtidTracker(SERVER), durable)

        assert (tail.end, path.read_bytes()) == (kept, data[:kept])
        assert ("no checksums" in tail.reason) == (kept < len(data))


@pytest.mark.usefixtures("without_checksums")
def test_a_relay_without_checksums_fetches_what_was_not_synced_again(rig: Rig, upstream: MariadbServer) -> None:
    unit = rig.relay()
    insert(upstream, 30, 900)
    rig.catch_up(unit)
    unit.stop()
    path = unit.log.path(unit.written.file)
    place = boundaries(path.read_bytes())[-4]
    with path.open("r+b") as file:
        file.seek(place + 60)
        file.write(bytes(40))
    write_meta(path.parent, Location(Position(path.name, place)))
    insert(upstream)

    unit.start()

    assert path.name in rig.compare(unit)


@pytest.mark.parametrize("seed", range(4))
def test_a_torn_relay_goes_on_as_if_nothing_had_been(rig: Rig, upstream: MariadbServer, seed: int) -> None:
    unit = rig.relay()
    insert(upstream, 30, 900)
    rig.catch_up(unit)
    unit.stop()
    path = unit.log.path(unit.written.file)
    size = path.stat().st_size
    dice = random.Random(seed)
    with path.open("r+b") as file:
        if seed % 2:
            file.truncate(dice.randrange(size))
        else:
            file.seek(dice.randrange(size))
            file.write(b"\x5a\xa5\x5a")
    insert(upstream)

    unit.start()

    assert path.name in rig.compare(unit)


def test_garbage_behind_the_last_event_goes(rig: Rig, upstream: MariadbServer) -> None:
    unit = rig.relay()
    insert(upstream)
    rig.catch_up(unit)
    unit.stop()
    with unit.log.path(unit.written.file).open("ab") as file:
        file.write(bytes(4096))

    unit.start()
    insert(upstream)

    rig.compare(unit)
