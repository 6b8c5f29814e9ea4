"""The master over HTTP: verbs, beats, and requests that reach one that only follows."""

from __future__ import annotations

from pathlib import Path

from cluster_rig import FakeWorker, source_text, task_text
from served_master import Knock, served


def test_a_master_that_follows_passes_everything_on(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'm.db'}"
    with served(url, "one") as one, served(url, "two") as two:
        assert (one.master.election.epoch, two.master.election.epoch) == (1, 0)
        worker = FakeWorker("w1", Knock([two.base]))
        one.workers[worker.addr] = worker
        orders = worker.beat()
        assert orders is not None and orders.order is None and orders.leader == one.master.addr
        told = two.ask("operate-source", op="create", config=[source_text("a")])
        assert told["sources"][0]["worker"] == "w1", told
        assert two.ask("start-task", task=task_text("t", "a"))["result"]
        assert two.ask("query-status")["tasks"][0]["taskStatus"] == "Running"
        members = two.ask("list-member", leader=True)["members"]
        assert members == [{"leader": {"msg": "", "name": "one", "addr": one.master.addr}}]


def test_what_goes_wrong_is_told_in_ctl_s_form(tmp_path: Path) -> None:
    with served(f"sqlite:///{tmp_path / 'm.db'}", "one") as one:
        told = one.ask("stop-task", name="nothing")
        assert told["result"] is False and told["msg"].startswith("CLUSTER-017")
        told = one.ask("start-task", task="name: [")
        assert told["result"] is False and told["msg"].startswith("CONFIG-003")
        answer = one.client.post("/apis/v1alpha1/ctl/stop-task", json={"nome": "x"})
        assert answer.status_code == 422 and answer.json()["result"] is False
