"""A purge by hand deletes nothing while a worker's tasks come and go: its list may lack one that goes on elsewhere.

Nor what a task that stands (by REST, or for its source is disabled) goes on from when it is started again.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from unshard.api.heartbeat import PurgeWish, SourceOrder, SubtaskOrder
from unshard.api.status import Stage
from unshard.config.files import parse_source, parse_task
from unshard.config.subtask import plan_subtasks
from unshard.errors import ClusterError, RelayError, TargetError
from unshard.model.position import Location, Position
from unshard.sync.checkpoint.store import CheckpointStore
from unshard.target.checkpoint import Checkpoint
from unshard.target.meta import MetaTables
from unshard.testing.mariadb_server import MariadbServer
from unshard.worker.source_worker import Means, SourceWorker

STANDS = """
name: t
task-mode: all
meta-schema: {schema}
target-database: {{host: 127.0.0.1, port: {port}, user: root}}
mysql-instances: [{{source-id: s1}}]
"""
NOWHERE = "host: 127.0.0.1, port: 1, user: root"
TASK = f"{{name: t, task-mode: all, target-database: {{{NOWHERE}}}, mysql-instances: [{{source-id: s1}}]}}"


def order(stage: Stage, task: str = TASK) -> SourceOrder:
    source = parse_source(f"{{source-id: s1, from: {{{NOWHERE}}}}}")
    (config,) = plan_subtasks(parse_task(task), [source])
    one = SubtaskOrder(task="t", stage=stage, revision=1, config=config.model_dump(mode="json"))
    return SourceOrder(
        source="s1", epoch=1, config=source.model_dump(mode="json"), subtasks=(one,), relay_stage=Stage.STOPPED
    )


def not_built(*given: Any) -> Any:
    raise AssertionError(f"nothing is run here: {given}")


@pytest.fixture
def host(tmp_path: Path) -> Iterator[SourceWorker]:
    """With a paused task, whose records in the target a purge has to look at, and three files of relay log."""
    folder = tmp_path / "s1" / "a-1.000001"
    folder.mkdir(parents=True)
    (tmp_path / "s1" / "server-uuid.index").write_text("a-1.000001\n")
    for number in (1, 2, 3):
        (folder / f"bin.00000{number}").write_bytes(b"\xfebin")
    host = SourceWorker(order(Stage.PAUSED), Means("w1", not_built, relay_dir=str(tmp_path)), lambda: None)
    yield host
    host.close()
    host.relay.close()


def closed(host: SourceWorker) -> None:
    host.close()


def alone(host: SourceWorker) -> None:
    host.stand_alone()


def taken_away_and_given_back(host: SourceWorker) -> None:
    """The order to begin has come, and is not obeyed yet."""
    host.obey(order(Stage.STOPPED))
    host.tick()
    assert not host.subtasks
    host.order = order(Stage.RUNNING)


@pytest.mark.parametrize("happen", [closed, alone, taken_away_and_given_back])
def test_nothing_is_purged(happen: Callable[[SourceWorker], None], host: SourceWorker, tmp_path: Path) -> None:
    wish = PurgeWish(time=2**40)
    with pytest.raises(TargetError):
        host.purge(wish)  # it asks for the task's place
    happen(host)
    host.tick()
    with pytest.raises(RelayError) as caught:
        host.purge(wish)
    assert caught.value.code == "RELAY-037"
    assert caught.value.retryable
    assert len(list(tmp_path.glob("s1/*/bin.*"))) == 3


def test_without_tasks_all_but_the_last_file_goes(host: SourceWorker, tmp_path: Path) -> None:
    host.obey(order(Stage.STOPPED).model_copy(update={"subtasks": ()}))
    host.tick()
    host.purge(PurgeWish(time=2**40))
    assert len(list(tmp_path.glob("s1/*/bin.*"))) < 3


@pytest.mark.server
def test_what_a_task_that_stands_goes_on_from_is_kept(
    host: SourceWorker, tmp_path: Path, target_server: MariadbServer, schema: str
) -> None:
    stands = order(Stage.STOPPED, STANDS.format(schema=schema, port=target_server.port))
    store = CheckpointStore(target_server.endpoint, MetaTables(schema, "t"), "s1")
    store.claim()
    place = Checkpoint(Location(Position("bin.000002", 4)))
    store.cross("a-1", place, ())
    store.drop()
    host.obey(stands)
    host.tick()
    assert not host.subtasks
    told = host.purge(PurgeWish(time=2**40))
    assert told.startswith("1 file (a-1.000001/bin.000001) deleted, ")
    assert told.endswith(
        "2 files (a-1.000001/bin.000002 to a-1.000001/bin.000003) kept: task t reads from bin.000002:4 on"
    )
    unread = stands.subtasks[0].model_copy(update={"config": {}, "unread": "of a later version"})
    host.obey(stands.model_copy(update={"subtasks": (unread,)}))
    with pytest.raises(ClusterError, match="CLUSTER-097"):
        host.purge(PurgeWish(time=2**40))
    assert len(list(tmp_path.glob("s1/*/bin.*"))) == 2


@pytest.mark.server
def test_one_that_has_never_begun_keeps_nothing(
    host: SourceWorker, tmp_path: Path, target_server: MariadbServer, schema: str
) -> None:
    host.obey(order(Stage.STOPPED, STANDS.format(schema=schema, port=target_server.port)))
    host.tick()
    host.purge(PurgeWish(time=2**40))
    assert [path.name for path in tmp_path.glob("s1/*/bin.*")] == ["bin.000003"]
