"""A local time of the source's zone in UTC, asked of the source itself; a start time without a zone is one."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from support.task_runs import newest
from unshard.config.files import parse_source, parse_task
from unshard.config.subtask import SubtaskConfig, plan_subtask
from unshard.errors import ClusterError
from unshard.master.beginning import at_time
from unshard.source.local_time import utc_of
from unshard.testing.mariadb_server import MariadbServer

pytestmark = pytest.mark.server

SUMMER, WINTER = 1711846800, 1729990800  # 2024-03-31 and 2024-10-27, each at 01:00 in UTC


@pytest.fixture(scope="module")
def server() -> Iterator[MariadbServer]:
    """Its zone `Here` is an hour before UTC, two in the summer of 2024."""
    with MariadbServer() as found:
        found.run(
            "INSERT INTO mysql.time_zone (Time_zone_id, Use_leap_seconds) VALUES (9999, 'N')",
            "INSERT INTO mysql.time_zone_name VALUES ('Here', 9999)",
            "INSERT INTO mysql.time_zone_transition_type VALUES (9999, 0, 3600, 0, 'W'), (9999, 1, 7200, 1, 'S')",
            f"INSERT INTO mysql.time_zone_transition VALUES (9999, 0, 0), (9999, {SUMMER}, 1), (9999, {WINTER}, 0)",
        )
        yield found


@pytest.mark.parametrize(
    ("zone", "local", "utc"),
    [
        ("+05:30", "2024-05-01 00:00:00", "2024-04-30 18:30:00"),
        ("-03:00", "2024-05-01 00:00:00", "2024-05-01 03:00:00"),
        ("Here", "2024-05-01 00:00:00", "2024-04-30 22:00:00"),
        ("Here", "2024-12-01 00:00:00", "2024-11-30 23:00:00"),
        ("Here", "2024-03-31 01:59:59", "2024-03-31 00:59:59"),
        ("Here", "2024-03-31 02:30:00", None),
        ("Here", "2024-03-31 03:00:00", "2024-03-31 01:00:00"),
        ("Here", "2024-10-27 01:59:59", "2024-10-26 23:59:59"),
        ("Here", "2024-10-27 02:30:00", None),
        ("Here", "2024-10-27 03:00:00", "2024-10-27 02:00:00"),
        ("+00:00", "1000-01-01 00:00:00", None),
        ("+00:00", "9999-12-31 00:00:00", None),
    ],
)
def test_a_local_time(server: MariadbServer, zone: str, local: str, utc: str | None) -> None:
    server.run(f"SET GLOBAL time_zone = '{zone}'")
    assert utc_of(server.endpoint, local) == utc


def subtask(server: MariadbServer) -> SubtaskConfig:
    login = f"{{host: 127.0.0.1, port: {server.port}, user: root}}"
    task = parse_task(
        "name: t\ntask-mode: incremental\n"
        f"target-database: {login}\nmysql-instances: [{{source-id: s, block-allow-list: all}}]\n"
        "block-allow-list: {all: {do-dbs: [shop]}}\n"
    )
    return plan_subtask(task, parse_source(f"source-id: s\nfrom: {login}\n"))


def test_a_start_time_without_a_zone_is_the_source_s_own(server: MariadbServer) -> None:
    """The source writes at 04:00 UTC, which is noon there, and again at noon UTC: its noon comes first."""
    server.run("SET GLOBAL time_zone = '+08:00'", "CREATE DATABASE shop", "CREATE TABLE shop.t (id INT PRIMARY KEY)")
    places = {}
    for number, utc in enumerate(("2037-05-01 04:00:00", "2037-05-01 12:00:00")):
        places[utc] = newest(server).offset
        server.run(
            f"SET time_zone = '+00:00', timestamp = UNIX_TIMESTAMP('{utc}')", f"INSERT INTO shop.t VALUES ({number})"
        )
    found = {
        time: at_time(subtask(server), time, True)
        for time in (
            "2037-05-01 12:00:00",
            "2037-05-01 12:00:00.7",
            "2037-05-01T12:00:00+08:00",
            "2037-05-01T04:00:00Z",
            "2037-05-01T12:00:00Z",
        )
    }
    *noon, at_utc = ((one.meta.binlog_pos, f"{one.utc:%Y-%m-%d %H:%M:%S}") for one in found.values())
    assert noon == [(places["2037-05-01 04:00:00"], "2037-05-01 04:00:00")] * 4
    assert at_utc == (places["2037-05-01 12:00:00"], "2037-05-01 12:00:00")


def test_a_start_time_that_the_source_has_twice_is_refused_without_a_zone(server: MariadbServer) -> None:
    server.run("SET GLOBAL time_zone = 'Here'")
    with pytest.raises(ClusterError, match="write it with its zone") as caught:
        at_time(subtask(server), "2024-10-27 02:30:00", True)
    assert (caught.value.code, caught.value.where.source) == ("CLUSTER-016", "s")
    assert f"{at_time(subtask(server), '2024-10-27T02:30:00+02:00', True).utc:%H:%M}" == "00:30"
