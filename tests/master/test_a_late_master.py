"""A master that another one has replaced takes no further step in the target; its command is repeated."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from cluster_rig import Rig, task_text, two_sources
from sqlalchemy import update

from support.waiting import wait_until
from unshard.api.verbs import PauseTask, StartTask, StopTask, UpdateTask
from unshard.errors import ClusterError
from unshard.master import tables

SHARDED = "shard-mode: pessimistic\n"


def stopped(rig: Rig) -> None:
    assert rig.start("t", "a", "b")["result"]
    rig.master.tasks.halt(StopTask(name="t"))


def sharded(rig: Rig) -> None:
    assert rig.master.start_task(StartTask(task=task_text("t", "a", "b", more=SHARDED)))["result"]
    rig.master.pause_task(PauseTask(name="t"))
    rig.master.stop_task(StopTask(name="t", sources=("b",)))


VERBS: dict[str, tuple[Callable[[Rig], object], Callable[[Rig], object]]] = {
    "reset": (
        lambda rig: None,
        lambda rig: rig.master.start_task(StartTask(task=task_text("t", "a", "b"), reset="do")),
    ),
    "remove-meta": (
        lambda rig: None,
        lambda rig: rig.master.start_task(StartTask(task=task_text("t", "a", "b"), remove_meta=True)),
    ),
    "remove-meta by REST": (
        stopped,
        lambda rig: rig.master.tasks.anew(StartTask(task=task_text("t", "a", "b"), remove_meta=True)),
    ),
    "delete by REST": (stopped, lambda rig: rig.master.tasks.drop_meta("t")),
    "update-task without a source": (
        sharded,
        lambda rig: rig.master.update_task(UpdateTask(task=task_text("t", "a", more=SHARDED))),
    ),
}


def done(rig: Rig) -> list[object]:
    return [*rig.forgotten, *rig.resets, *rig.left]


def lease(rig: Rig, **values: object) -> None:
    with rig.master.cluster.store.transaction() as connection:
        connection.execute(update(tables.LEADER).values(**values))


@pytest.mark.parametrize("verb", VERBS)
def test_a_master_that_was_frozen_changes_nothing_in_the_target(rig: Rig, verb: str) -> None:
    """Another one leads in the store, while this one still takes itself for the leader."""
    prepare, run = VERBS[verb]
    two_sources(rig)
    prepare(rig)
    before = done(rig)

    def replaced() -> None:
        lease(rig, epoch=99, name="m2", addr="m2:8261")

    def first_check() -> None:
        rig.meanwhile = replaced  # while the records are dropped

    rig.meanwhile = first_check if verb == "remove-meta" else replaced
    with pytest.raises(ClusterError) as caught:
        run(rig)
    assert caught.value.code == "CLUSTER-100"
    assert done(rig) == before
    if verb in ("reset", "remove-meta"):
        assert "t" not in rig.master.cluster.store.read().tasks
    lease(rig, until=0.0)
    wait_until(lambda: _leads(rig), "it leads again")
    run(rig)
    assert done(rig) != before, "the command is repeated, as the error says"


def _leads(rig: Rig) -> bool:
    rig.master.step()
    for worker in rig.workers.values():
        worker.beat()
    return bool(rig.master.election.epoch)
