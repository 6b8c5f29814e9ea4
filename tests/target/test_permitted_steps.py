"""Each step of dropping a task's records and tables is permitted by itself: the first that is not ends the work."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from support.schema_tables import names_in
from unshard.config.files import parse_source, parse_task
from unshard.config.subtask import SubtaskConfig, plan_subtask
from unshard.errors import ClusterError
from unshard.master.beginning import forget, leave, reset
from unshard.model.table import TableName
from unshard.mysql.connection import session
from unshard.mysql.endpoint import to_endpoint
from unshard.target.filled import FilledTables
from unshard.target.meta import MetaTables
from unshard.target.receipts import claim
from unshard.testing.throwaway_server import ThrowawayServer

pytestmark = pytest.mark.server


@pytest.fixture
def config(target_server: ThrowawayServer, schema: str) -> SubtaskConfig:
    """A task that has made two tables and its records in the target."""
    login = f"{{host: 127.0.0.1, port: {target_server.port}, user: root}}"
    task = parse_task(
        f"name: t\ntask-mode: all\nmeta-schema: {schema}\ntarget-database: {login}\n"
        "mysql-instances: [{source-id: s}]\n"
    )
    config = plan_subtask(task, parse_source(f"source-id: s\nfrom: {login}\n"))
    with session(to_endpoint(config.target), "target") as connection:
        meta = MetaTables(schema, "t")
        meta.create(connection)
        claim(connection, meta, "s")
        filled = FilledTables(schema, "t")
        filled.create(connection)
        names = [TableName(schema, "made1"), TableName(schema, "made2")]
        filled.claim(connection, "s", names, merges=False)
        for name in names:
            target_server.run(f"CREATE TABLE {name.quoted} (id INT PRIMARY KEY)")
            filled.note_made(connection, name)
    return config


def times(count: int) -> Callable[[], None]:
    """Permits that many steps."""
    left = [None] * count

    def permit() -> None:
        if not left:
            raise ClusterError("CLUSTER-100")
        left.pop()

    return permit


def test_records_are_dropped_one_by_one(config: SubtaskConfig, target_server: ThrowawayServer, schema: str) -> None:
    before = names_in(target_server, schema)
    for steps in (0, 1, 3):
        with pytest.raises(ClusterError, match="CLUSTER-100"):
            forget(config, times(steps))
        assert len(before) - len(names_in(target_server, schema)) == {0: 0, 1: 0, 3: 2}[steps]
    forget(config)
    assert names_in(target_server, schema) == {"t_load_table", "made1", "made2"}


def test_tables_are_dropped_one_by_one(config: SubtaskConfig, target_server: ThrowawayServer, schema: str) -> None:
    forget(config)
    for steps, left in ((0, {"made1", "made2"}), (1, {"made1", "made2"}), (2, {"made2"})):
        with pytest.raises(ClusterError, match="CLUSTER-100"):
            reset([config], False, times(steps))
        assert names_in(target_server, schema) == {"t_load_table", *left}
    reset([config], False)
    assert not names_in(target_server, schema)


def test_a_source_leaves_in_permitted_steps(config: SubtaskConfig, target_server: ThrowawayServer, schema: str) -> None:
    def epoch() -> int:
        ((found,),) = target_server.query(f"SELECT epoch FROM {schema}.t_apply_batch WHERE source = 's'")
        return int(found)

    first = epoch()
    with pytest.raises(ClusterError, match="CLUSTER-100"):
        leave(config, ["s"], times(0))
    assert epoch() == first
    leave(config, ["s"])
    assert epoch() == first + 1
