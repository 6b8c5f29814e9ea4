"""A source that replicates from another server, and does not log what it applies."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import pytest

from support.checked_tasks import as_user, found, report_of, statement, with_keys, with_source
from support.replicas import Pair
from support.source_servers import new_source
from support.target_servers import BUILT_IN_COLLATIONS
from support.task_runs import TaskFiles
from unshard.checks.run import require
from unshard.errors import CheckError
from unshard.testing.mariadb_server import MariadbServer

pytestmark = pytest.mark.server
CHECK = "mysql_log_slave_updates"


@pytest.fixture
def pair() -> Iterator[Pair]:
    with MariadbServer() as primary, MariadbServer(BUILT_IN_COLLATIONS) as replica:
        yield Pair(primary, replica)


def test_a_replica_that_does_not_log_what_it_applies(files: TaskFiles, pair: Pair) -> None:
    pair.primary.run(f"CREATE DATABASE {files.schemas[0]}", f"CREATE TABLE {files.schemas[0]}.t (id INT PRIMARY KEY)")
    pair.catch_up()
    files = replace(files, sources={"s1": pair.replica})
    for stopped in (False, True):  # a replica that is stopped may be started again
        if stopped:
            pair.pause()
        (finding,) = found(files, CHECK)
        assert finding.severity == "fail"
        assert f"127.0.0.1:{pair.primary.port}" in finding.short_error
        assert "log_slave_updates = ON" in finding.instruction
    with pytest.raises(CheckError, match="log_slave_updates is OFF"):
        require(report_of(files))
    for others in ({"ignore_checking_items": ["log_slave_updates"]}, {"task_mode": "full"}):
        assert CHECK not in {result.name for result in report_of(with_keys(files, **others)).results}
    pair.replica.run("RESET SLAVE ALL")
    assert found(files, CHECK) == []


def test_a_replica_that_logs_what_it_applies(files: TaskFiles) -> None:
    with MariadbServer() as primary, new_source() as replica:
        pair = Pair(primary, replica)
        primary.run(f"CREATE DATABASE {files.schemas[0]}", f"CREATE TABLE {files.schemas[0]}.t (id INT PRIMARY KEY)")
        pair.catch_up()
        assert found(replace(files, sources={"s1": replica}), CHECK) == []


def test_an_account_that_may_not_ask(files: TaskFiles, changed_source: MariadbServer) -> None:
    login = as_user(changed_source, "asks", "SELECT, REPLICATION SLAVE, BINLOG MONITOR ON *.*")
    files = with_source(files, login)
    (finding,) = found(files, CHECK)
    assert finding.severity == "warn"
    assert "denied" in finding.short_error
    changed_source.run(statement(finding))
    assert found(files, CHECK) == []
