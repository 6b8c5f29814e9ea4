"""A change whose commit's answer is lost: the leader asks the store what came of it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import pytest
from cluster_rig import Rig
from sqlalchemy import Connection

from unshard.errors import ClusterError
from unshard.master.state import TaskRow
from unshard.master.store import Store


def test_a_commit_without_an_answer_is_seen(rig: Rig, monkeypatch: pytest.MonkeyPatch) -> None:
    assert not rig.master.cluster.state.tasks
    transaction = Store.transaction

    @contextmanager
    def cut_off(store: Store) -> Iterator[Connection]:
        with transaction(store) as connection:
            yield connection
        raise ClusterError("CLUSTER-003", cause="Lost connection to server during query")

    with monkeypatch.context() as patched, pytest.raises(ClusterError):
        patched.setattr(Store, "transaction", cut_off)
        with rig.master.cluster.change() as writing:
            writing.put_task(TaskRow("t", "text"))
    assert list(rig.master.cluster.state.tasks) == ["t"]


def test_a_change_that_was_rolled_back_is_not_seen(rig: Rig) -> None:
    with pytest.raises(RuntimeError), rig.master.cluster.change() as writing:
        writing.put_task(TaskRow("t", "text"))
        raise RuntimeError
    assert not rig.master.cluster.state.tasks
