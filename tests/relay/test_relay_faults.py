"""Connections that break, servers that die, bytes that change, a disk that fills up: nothing is lost or doubled."""

from __future__ import annotations

import random
import resource
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import MySQLdb
import pytest
from rig import Rig, insert, newest

from support.server_clock import next_second
from support.waiting import wait_until
from unshard.errors import RelayError, SourceError
from unshard.model.position import Location, Position
from unshard.relay.meta import read_meta
from unshard.relay.writer import RelayWriter
from unshard.source.replica import ReplicaStream
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.proxy import FaultProxy

pytestmark = pytest.mark.server


@contextmanager
def largest_file(size: int) -> Iterator[None]:
    """The kernel takes no write of this process beyond `size` bytes of a file (EFBIG), as on a full disk."""
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))


def kill_dump_threads(server: MariadbServer) -> None:
    """All that send a binlog to somebody; those of relays that have stopped may end by themselves meanwhile."""
    for (number,) in server.query("SELECT ID FROM information_schema.PROCESSLIST WHERE COMMAND = 'Binlog Dump'"):
        with suppress(MySQLdb.OperationalError):
            server.run(f"KILL {number}")


def purge_old(server: MariadbServer) -> None:
    """Leave only the newest binlog; a dump thread that has not noticed its client's end would hold files back."""
    kill_dump_threads(server)
    server.run("FLUSH BINARY LOGS")
    wait_until(lambda: _purged(server), "only the newest file is left")


def _purged(server: MariadbServer) -> bool:
    server.run(f"PURGE BINARY LOGS TO '{newest(server).file}'")
    return len(server.query("SHOW BINARY LOGS")) == 1


def test_cuts_in_the_middle_of_events(rig: Rig, upstream: MariadbServer, proxy: FaultProxy) -> None:
    start = Location(newest(upstream))
    insert(upstream, 60, 3000)
    unit = rig.relay(start, proxy.port)
    dice = random.Random(7)
    for _ in range(6):
        proxy.cut_after(dice.randrange(200, 40_000))
        insert(upstream, 10, 4000)
        wait_until(proxy.has_cut, "the connection is cut")

    rig.compare(unit)

    assert unit.status().reconnects >= 6


def test_a_cut_inside_a_very_large_event(rig: Rig, upstream: MariadbServer, proxy: FaultProxy) -> None:
    unit = rig.relay(port=proxy.port)
    rig.catch_up(unit)
    proxy.cut_after(17_000_000)
    insert(upstream, 1, 20_000_000)

    rig.compare(unit)

    assert unit.status().reconnects >= 1


def test_silence_is_a_lost_connection(rig: Rig, upstream: MariadbServer, proxy: FaultProxy) -> None:
    unit = rig.relay(port=proxy.port, heartbeat_seconds=0.2)
    rig.catch_up(unit)
    proxy.stall()
    insert(upstream)

    def is_told() -> bool:  # it may have lost the connection before too: what counts is what stays
        status = unit.status()
        assert status.stage == "Running"
        return (
            status.reconnects > 0
            and status.reconnecting_since is not None
            and status.trouble is not None
            and status.trouble.code == "RELAY-001"
        )

    wait_until(is_told, "the silence is told")
    proxy.cut()
    proxy.flow()

    rig.compare(unit)


def test_a_quiet_source_is_not_silence(
    rig: Rig, upstream: MariadbServer, proxy: FaultProxy, monkeypatch: pytest.MonkeyPatch
) -> None:
    heard: set[float] = set()
    receive = ReplicaStream._receive_into

    def receive_into(stream: ReplicaStream, view: memoryview, timeout: float) -> int:
        stream._liveness_seconds = 60  # a busy machine is no silent source
        got = receive(stream, view, timeout)
        heard.add(stream._heard)
        return got

    monkeypatch.setattr(ReplicaStream, "_receive_into", receive_into)
    unit = rig.relay(port=proxy.port, heartbeat_seconds=0.2)
    rig.catch_up(unit)
    accepted, before = proxy.accepted, len(heard)
    wait_until(lambda: len(heard) >= before + 5, "five signs of life")
    assert (unit.status().reconnects, proxy.accepted) == (0, accepted)


def test_a_source_that_is_killed_comes_back(rig: Rig, upstream: MariadbServer) -> None:
    unit = rig.relay()
    insert(upstream)
    rig.catch_up(unit)
    upstream.kill()
    wait_until(lambda: unit.status().reconnecting_since is not None, "it reconnects")
    upstream.start()
    insert(upstream)
    rig.catch_up(unit)
    assert unit.status().reconnecting_since is None

    rig.compare(unit, crashed=True)


def test_a_killed_dump_thread(rig: Rig, upstream: MariadbServer) -> None:
    unit = rig.relay()
    rig.catch_up(unit)
    kill_dump_threads(upstream)
    insert(upstream)

    rig.compare(unit)

    assert unit.status().reconnects >= 1


def test_two_replicas_with_one_id_both_go_on(rig: Rig, upstream: MariadbServer, tmp_path: Path) -> None:
    other = Rig(upstream, tmp_path / "other")
    keys: dict[str, Any] = {"server-id": 77}
    units = [rig.relay(**keys), other.relay(**keys)]
    try:
        insert(upstream)
        wait_until(lambda: sum(unit.status().reconnects for unit in units) >= 1, "one was thrown out")
        insert(upstream)
        for unit in units:
            rig.catch_up(unit)
    finally:
        units[1].stop()


def test_a_changed_bit_on_the_way_stops_it_and_nothing_bad_is_kept(
    rig: Rig, upstream: MariadbServer, proxy: FaultProxy
) -> None:
    unit = rig.relay(port=proxy.port)
    rig.catch_up(unit)
    proxy.flip_after(5_000)
    insert(upstream, 1, 100_000)
    wait_until(lambda: unit.status().stage == "Paused", "it stops")
    with pytest.raises(RelayError) as raised:
        unit.check()
    assert raised.value.code == "RELAY-005"
    assert raised.value.where.source == "s1"

    unit.start()

    rig.compare(unit)


def test_a_full_disk_stops_it_and_loses_nothing(rig: Rig, upstream: MariadbServer) -> None:
    upstream.run("FLUSH BINARY LOGS")
    start = Location(newest(upstream))
    insert(upstream, 40, 5_000)
    with largest_file(100_003):
        unit = rig.relay(start)
        wait_until(lambda: unit.status().stage == "Paused", "it stops")
    with pytest.raises(RelayError) as raised:
        unit.check()
    assert raised.value.code == "RELAY-013"
    at = unit.written
    assert unit.log.size(at.file) == at.offset <= 100_003

    unit.start()

    assert rig.compare(unit)[0] == start.position.file


def test_a_purged_binlog_names_the_oldest_there_is(rig: Rig, upstream: MariadbServer) -> None:
    purge_old(upstream)
    oldest = newest(upstream).file
    gone = Position(f"mysql-bin.{newest(upstream).number - 1:06d}")

    unit = rig.relay(Location(gone))
    wait_until(lambda: unit.status().stage == "Paused", "it stops")

    with pytest.raises(RelayError, match="oldest") as raised:
        unit.check()
    assert raised.value.code == "RELAY-010"
    assert oldest in raised.value.cause


def test_binlogs_purged_behind_a_stopped_relay(rig: Rig, upstream: MariadbServer) -> None:
    unit = rig.relay()
    insert(upstream)
    rig.catch_up(unit)
    unit.stop()
    upstream.run("FLUSH BINARY LOGS")
    purge_old(upstream)

    unit.start()
    wait_until(lambda: unit.status().stage == "Paused", "it stops")

    with pytest.raises(RelayError) as raised:
        unit.check()
    assert raised.value.code == "RELAY-010"


def test_an_old_log_whose_end_was_purged_is_left_when_nobody_waits_for_it(rig: Rig, upstream: MariadbServer) -> None:
    unit = rig.relay()
    insert(upstream)
    rig.catch_up(unit)
    unit.stop()
    upstream.run("FLUSH BINARY LOGS")
    purge_old(upstream)

    other = rig.relay()
    rig.catch_up(other)

    assert rig.compare(other)
    assert str(other.log.sub_directory).endswith(".000002")


def test_a_refused_password(rig: Rig, upstream: MariadbServer) -> None:
    upstream.run("CREATE OR REPLACE USER refused@'127.0.0.1' IDENTIFIED BY 'right'")
    unit = rig.relay(port=1)
    unit.stop()
    unit._endpoint = replace(upstream.endpoint, user="refused", password="wrong")
    unit.start()
    wait_until(lambda: unit.status().stage == "Paused", "it stops")
    with pytest.raises(SourceError) as raised:
        unit.check()
    assert raised.value.code == "SOURCE-002"
    assert "wrong" not in str(raised.value)


def test_a_reset_source_is_not_taken_for_the_same(rig: Rig) -> None:
    with MariadbServer() as server:
        own = Rig(server, rig.folder)
        server.run("CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY AUTO_INCREMENT, b LONGBLOB)")
        unit = own.relay(Location(newest(server)))
        rig.units.append(unit)
        insert(server, 5)
        own.catch_up(unit)
        unit.stop()
        next_second(server)  # the format event's time tells the two files apart
        server.run("RESET MASTER")
        insert(server, 50)
        unit.start()
        wait_until(lambda: unit.status().stage == "Paused", "it stops")
        with pytest.raises(RelayError) as raised:
            unit.check()
        assert raised.value.code == "RELAY-015"


def test_another_server_needs_gtid(rig: Rig, upstream: MariadbServer) -> None:
    unit = rig.relay()
    insert(upstream)
    rig.catch_up(unit)
    unit.stop()
    gtid = upstream.query("SELECT @@gtid_binlog_pos")[0][0]
    with MariadbServer() as server:
        server.run(f"SET GLOBAL gtid_slave_pos = '{gtid}'", "RESET MASTER", f"SET GLOBAL gtid_binlog_state = '{gtid}'")
        server.run("FLUSH BINARY LOGS")
        server.run("CREATE DATABASE d", "CREATE TABLE d.t (id INT PRIMARY KEY AUTO_INCREMENT, b LONGBLOB)")
        by_gtid: dict[str, Any] = {"enable-gtid": True}
        own = Rig(server, rig.folder)
        refused = own.relay()
        wait_until(lambda: refused.status().stage == "Paused", "it stops")
        with pytest.raises(RelayError) as raised:
            refused.check()
        assert raised.value.code == "RELAY-008"

        switched = own.relay(**by_gtid)
        rig.units += [refused, switched]
        names = own.compare(switched)
        assert names == ("mysql-bin.000002",)
        assert str(switched.log.sub_directory) == f"0-{server.port}.000002"


def gtids(server: MariadbServer) -> str:
    return str(server.query("SELECT @@gtid_binlog_pos")[0][0])


def test_a_transaction_across_a_lost_connection_is_in_the_set(
    rig: Rig, upstream: MariadbServer, proxy: FaultProxy
) -> None:
    unit = rig.relay(port=proxy.port)
    rig.catch_up(unit)
    proxy.cut_after(100_000)
    upstream.run("BEGIN", *(f"INSERT INTO d.t (b) VALUES (REPEAT('{one}', 20000))" for one in "abcdefghij"), "COMMIT")
    rig.catch_up(unit)
    unit.stop()
    assert unit.status().reconnects == 1
    meta = read_meta(unit.log.folder)
    assert meta == Location(newest(upstream), gtids(upstream))


def test_what_was_received_and_not_written_is_not_in_the_set(
    rig: Rig, upstream: MariadbServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    unit = rig.relay()
    rig.catch_up(unit)
    known = Location(newest(upstream), gtids(upstream))

    def full(writer: RelayWriter, offset: int, data: memoryview) -> None:
        raise RelayError("RELAY-013")

    monkeypatch.setattr(RelayWriter, "write", full)
    insert(upstream, 1)
    wait_until(lambda: unit.status().trouble is not None, "the disk is full")
    unit.stop()
    assert read_meta(unit.log.folder) == known
