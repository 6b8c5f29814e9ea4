"""One server under two source-ids in a task: refused where both take a table of it, whatever address they go by."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import AbstractContextManager
from dataclasses import replace
from types import SimpleNamespace
from typing import Any

import pytest

from support.checked_tasks import found, with_keys
from support.task_runs import TaskFiles
from unshard.checks.run import check_moved, check_task
from unshard.config.files import load_source, load_task
from unshard.config.subtask import plan_subtasks
from unshard.mysql import one_server
from unshard.mysql.connection import Endpoint, Side, session
from unshard.mysql.flavour import Flavour, Server
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.proxy import FaultProxy

pytestmark = pytest.mark.server
NAME = "same upstream checker"


@pytest.fixture
def by_proxy(changed_source: MariadbServer) -> Iterator[FaultProxy]:
    with FaultProxy("127.0.0.1", changed_source.port) as proxy:
        yield proxy


@pytest.fixture
def twins(files: TaskFiles, changed_source: MariadbServer, by_proxy: FaultProxy) -> TaskFiles:
    """s1 and s2 are one server by two addresses."""
    sources: Any = {"s1": changed_source, "s2": by_proxy}
    return replace(files, sources=sources)


def with_lists(files: TaskFiles, **rules: Any) -> TaskFiles:
    """A block-allow list for each source."""
    named = {name: {"block-allow-list": name} for name in files.sources}
    return replace(with_keys(files, block_allow_list=rules), instances=named)


def test_by_two_addresses(twins: TaskFiles, schema: str) -> None:
    (lack,) = found(twins, NAME)
    assert lack.severity == "fail"
    assert f"s1 and s2 are one and the same server, and both take {schema}.t:" in lack.short_error
    ports = [server.port for server in twins.sources.values()]
    assert [lack.self, lack.other] == [f"s1 127.0.0.1:{ports[0]}", f"s2 127.0.0.1:{ports[1]}"]


def test_by_one_address_under_two_accounts(files: TaskFiles, changed_source: MariadbServer) -> None:
    three = replace(files, sources=dict.fromkeys(("s1", "s2", "s3"), changed_source))
    assert len(found(three, NAME)) == 3, "each two of them"


def test_two_servers_that_show_the_same_ids(files: TaskFiles, second_source: MariadbServer, schema: str) -> None:
    """As all of MariaDB do by default, and a server from a copy of another one's disk."""
    ids = "SELECT @@global.server_id, @@global.gtid_domain_id"
    put = "SET GLOBAL server_id = {}, GLOBAL gtid_domain_id = {}"
    (before,), (same,) = second_source.query(ids), files.sources["s1"].query(ids)
    second_source.run(put.format(*same), f"CREATE DATABASE {schema}", f"CREATE TABLE {schema}.t (id INT PRIMARY KEY)")
    try:
        assert found(replace(files, sources={**files.sources, "s2": second_source}), NAME) == []
    finally:
        second_source.run(put.format(*before), f"DROP DATABASE {schema}")


def test_lists_that_share_no_table(twins: TaskFiles, changed_source: MariadbServer, schema: str) -> None:
    changed_source.run(f"CREATE TABLE {schema}.other (id INT)")
    named = [{"db-name": schema, "tbl-name": "t"}]
    halves = with_lists(twins, s1={"do-tables": named}, s2={"do-dbs": [schema], "ignore-tables": named})
    assert found(halves, NAME) == []


def test_lists_that_share_tables_of_later_on(twins: TaskFiles, changed_source: MariadbServer, schema: str) -> None:
    changed_source.run(f"DROP TABLE {schema}.t")
    both = with_lists(twins, s1={"do-dbs": [f"{schema}*"]}, s2={"ignore-dbs": ["mysql", "sys*"]})
    (lack,) = found(both, NAME)
    assert "both take any table that is made later" in lack.short_error


def test_each_to_a_table_of_its_own(twins: TaskFiles, schema: str) -> None:
    route = {"away": {"schema-pattern": schema, "target-schema": f"{schema}_2"}}
    own = replace(with_keys(twins, routes=route), instances={"s2": {"route-rules": ["away"]}})
    assert found(own, NAME) == []


def test_each_is_asked_once_where_all_show_the_same_ids(
    files: TaskFiles, changed_source: MariadbServer, second_source: MariadbServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[Endpoint] = []

    def counted(endpoint: Endpoint, side: Side) -> AbstractContextManager[Any]:
        asked.append(endpoint)
        return session(endpoint, side)

    monkeypatch.setattr(one_server, "session", counted)
    first, second = changed_source.endpoint, second_source.endpoint
    gone = replace(first, port=1)
    server = Server(Flavour.MARIADB, (10, 11, 0), "", 1, "0-1")
    sources = {"s1": first, "s2": second, "s3": gone, "s4": second, "s5": first, "s6": first}
    found = one_server.of_one_server({name: (one, server) for name, one in sources.items()})
    assert found == (("s1", "s5", "s6"), ("s2", "s4"))
    assert len(asked) == len(sources)


def test_one_that_joins_is_held_against_those_that_are_there(twins: TaskFiles, by_proxy: FaultProxy) -> None:
    """`start-task -s s2` of a task that runs on s1. One that can't be asked now is in nobody's way."""
    twins.write()
    sources = [load_source(path) for path in twins.source_paths]
    task = load_task(twins.task_path)
    there, joins = plan_subtasks(task, sources)

    def lacks(*, others: Any) -> list[str]:
        (result,) = [one for one in check_task(task, [there], (), others).results if one.name == NAME]
        return [finding.short_error for finding in result.errors]

    assert lacks(others=()) == []
    assert len(lacks(others=[joins])) == 1
    by_proxy.close()
    assert lacks(others=[joins]) == []


def test_a_source_that_is_led_to_the_server_of_another(
    twins: TaskFiles, by_proxy: FaultProxy, second_source: MariadbServer
) -> None:
    """`update-source` with another host or port. The target is not asked where there is nothing to find."""

    def lacks(files: TaskFiles, **changes: Any) -> list[str]:
        files.write()
        task = load_task(files.task_path)
        moved, other = plan_subtasks(task, [load_source(path) for path in files.source_paths])
        report = check_moved(task.model_copy(update=changes), moved, [other])
        return [finding.short_error for result in report.results for finding in result.errors]

    nowhere: Any = SimpleNamespace(port=1)
    assert lacks(replace(twins, sources={**twins.sources, "s2": second_source}, target=nowhere)) == []
    (lack,) = lacks(twins)
    assert "s1 and s2 are one and the same server, and both take " in lack
    assert lacks(twins, ignore_checking_items=("all",)) == []
    by_proxy.close()
    assert lacks(twins) == []
