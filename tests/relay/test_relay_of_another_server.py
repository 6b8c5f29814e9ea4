"""The relay folder has the files of another server: where the relay of the present one begins."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from rig import Rig, insert, newest

from support.waiting import wait_until
from unshard.errors import RelayError
from unshard.model.position import Location, Position
from unshard.testing.mariadb_server import MariadbServer

pytestmark = pytest.mark.server

BY_GTID: dict[str, Any] = {"enable-gtid": True}


@pytest.fixture(scope="module")
def second() -> Iterator[MariadbServer]:
    """A server with three files, which knows nothing of the first one's transactions."""
    with MariadbServer({"gtid_domain_id": "7"}) as server:
        server.run("CREATE DATABASE d", "FLUSH BINARY LOGS", "CREATE DATABASE e", "FLUSH BINARY LOGS")
        yield server


@pytest.fixture
def own(rig: Rig, upstream: MariadbServer, second: MariadbServer) -> Rig:
    """A rig of the second server, in whose folder the first server's log is."""
    unit = rig.relay()
    insert(upstream)
    rig.catch_up(unit)
    unit.stop()
    made = Rig(second, rig.folder)
    made.units = rig.units
    return made


def uuid(server: MariadbServer) -> str:
    return f"7-{server.port}"


@pytest.mark.parametrize("keys", [{}, BY_GTID])
def test_a_task_without_a_start_begins_at_the_present_file(keys: dict[str, Any], own: Rig) -> None:
    unit = own.relay(upstream=uuid(own.server), **keys)
    unit.check()
    assert unit.log.files() == (newest(own.server).file,)
    assert str(unit.log.sub_directory) == f"{uuid(own.server)}.000002"


@pytest.mark.parametrize("keys", [{}, BY_GTID])
def test_a_start_in_a_file_of_the_server_is_used_as_it_is(keys: dict[str, Any], own: Rig) -> None:
    unit = own.relay(Location(Position("mysql-bin.000002", 300)), upstream=uuid(own.server), **keys)
    unit.check()
    own.catch_up(unit)
    assert unit.log.files()[0] == "mysql-bin.000002"


def test_a_start_by_gtids_needs_them_enabled(own: Rig) -> None:
    start = Location(Position(""), f"7-{own.server.port}-1")
    assert refused(own, start, upstream=uuid(own.server)) == "RELAY-008"
    unit = own.relay(start, upstream=uuid(own.server), **BY_GTID)
    own.catch_up(unit)
    assert unit.log.files()[0] == "mysql-bin.000002"


@pytest.mark.parametrize("purged", [False, True])
def test_a_relay_by_itself_goes_on_with_the_promoted_replica_if_that_has_the_rest(
    own: Rig, upstream: MariadbServer, *, purged: bool
) -> None:
    with MariadbServer() as promoted:
        gtids = upstream.query("SELECT @@gtid_binlog_pos")[0][0]
        promoted.run(f"SET GLOBAL gtid_binlog_state = '{gtids}'", "FLUSH BINARY LOGS", "CREATE DATABASE d")
        promoted.run("FLUSH BINARY LOGS", "CREATE DATABASE e", "FLUSH BINARY LOGS")
        if purged:
            promoted.run("PURGE BINARY LOGS TO 'mysql-bin.000003'")
        heir = Rig(promoted, own.folder)
        heir.units = own.units
        assert refused(heir, None) == "RELAY-008"
        unit = heir.relay(**BY_GTID)
        unit.check()
        assert unit.log.files()[0] == ("mysql-bin.000004" if purged else "mysql-bin.000002")
        unit.stop()


def refused(rig: Rig, start: Location | None, upstream: str | None = None) -> str:
    unit = rig.relay(start, upstream=upstream)
    wait_until(lambda: unit.status().stage == "Paused", "it stops")
    with pytest.raises(RelayError) as raised:
        unit.check()
    return raised.value.code
