"""A verb is answered once what it waits for is stored: the next verb goes by the store."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from cluster_rig import Rig

from unshard.api.status import Stage
from unshard.api.verbs import PauseTask


def test_a_pause_that_is_heard_but_not_stored_is_not_answered_yet(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    worker = rig.worker("w1")
    rig.sources("a")
    rig.start("t", "a")
    found: list[bool] = []

    def wait(done: Callable[[], bool], seconds: float) -> bool:
        del seconds
        found.append(done())
        orders = rig.master.beat(worker._sign())
        worker.order = orders.order
        worker._obey()
        rig.master.liveness.heard(worker._sign())
        found.append(done())
        rig.master.beat(worker._sign())
        found.append(done())
        return True

    with worker.heard:
        worker.quiet = True
        monkeypatch.setattr(rig.master.cluster, "hear", lambda sources: None)
        monkeypatch.setattr(rig.master.liveness, "wait", wait)
        assert rig.master.pause_task(PauseTask(name="t"))["result"]
    assert found == [False, False, True]
    assert rig.master.cluster.state.subtasks["t", "a"].brief is not None
    assert rig.master.cluster.state.subtasks["t", "a"].brief.stage is Stage.PAUSED
