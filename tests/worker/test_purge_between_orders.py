"""A purge by hand deletes nothing while a worker's tasks come and go: its list may lack one that goes on elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from unshard.api.orders import PurgeWish, SourceOrder, SubtaskOrder
from unshard.api.stage import Stage
from unshard.config.files import parse_source, parse_task
from unshard.config.subtask import plan_subtasks
from unshard.errors import RelayError, TargetError
from unshard.worker.source_host import Means, SourceHost

NOWHERE = "host: 127.0.0.1, port: 1, user: root"
TASK = f"{{name: t, task-mode: all, target-database: {{{NOWHERE}}}, mysql-instances: [{{source-id: s1}}]}}"


def order(stage: Stage) -> SourceOrder:
    source = parse_source(f"{{source-id: s1, from: {{{NOWHERE}}}}}")
    (config,) = plan_subtasks(parse_task(TASK), [source])
    one = SubtaskOrder(task="t", stage=stage, revision=1, config=config.model_dump(mode="json"))
    return SourceOrder(
        source="s1", epoch=1, config=source.model_dump(mode="json"), subtasks=(one,), relay_stage=Stage.STOPPED
    )


def not_built(*given: Any) -> Any:
    raise AssertionError(f"nothing is run here: {given}")


@pytest.fixture
def host(tmp_path: Path) -> Iterator[SourceHost]:
    """With a paused task, whose records in the target a purge has to look at, and three files of relay log."""
    folder = tmp_path / "s1" / "a-1.000001"
    folder.mkdir(parents=True)
    (tmp_path / "s1" / "server-uuid.index").write_text("a-1.000001\n")
    for number in (1, 2, 3):
        (folder / f"bin.00000{number}").write_bytes(b"\xfebin")
    host = SourceHost(order(Stage.PAUSED), Means("w1", not_built, relay_dir=str(tmp_path)), lambda: None)
    yield host
    host.close()
    host.relay.close()


def closed(host: SourceHost) -> None:
    host.close()


def alone(host: SourceHost) -> None:
    host.stand_alone()


def taken_away_and_given_back(host: SourceHost) -> None:
    """The order to begin has come, and is not obeyed yet."""
    host.obey(order(Stage.STOPPED))
    host.tick()
    assert not host.subtasks
    host.order = order(Stage.RUNNING)


@pytest.mark.parametrize("happen", [closed, alone, taken_away_and_given_back])
def test_nothing_is_purged(happen: Callable[[SourceHost], None], host: SourceHost, tmp_path: Path) -> None:
    wish = PurgeWish(time=2**40)
    with pytest.raises(TargetError):
        host.purge(wish)  # it asks for the task's place
    happen(host)
    host.tick()
    with pytest.raises(RelayError) as caught:
        host.purge(wish)
    assert caught.value.code == "RELAY-037" and caught.value.retryable
    assert len(list(tmp_path.glob("s1/*/bin.*"))) == 3


def test_without_tasks_all_but_the_last_file_goes(host: SourceHost, tmp_path: Path) -> None:
    host.obey(order(Stage.STOPPED).model_copy(update={"subtasks": ()}))
    host.tick()
    host.purge(PurgeWish(time=2**40))
    assert len(list(tmp_path.glob("s1/*/bin.*"))) < 3
