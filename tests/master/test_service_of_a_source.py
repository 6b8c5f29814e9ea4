"""The field of `query-status` that tells how a source is served: no program has to read the text for it."""

from __future__ import annotations

from cluster_rig import Rig

from unshard.api.status import ProcessError, ProcessResult, Service, SourceReport, SourceStatus, Stage, SubTaskStatus
from unshard.api.verbs import QueryStatus
from unshard.errors import ClusterError
from unshard.master.status import summary


def service(rig: Rig) -> str:
    (whole,) = rig.master.query_status(QueryStatus(sources=("a",)))["sources"]
    return str(whole["sourceStatus"]["service"])


def test_each_way_in_which_a_source_is_served_or_not_has_a_word(rig: Rig) -> None:
    rig.sources("a")
    assert service(rig) == "NoWorker"
    worker = rig.worker("w1")
    assert rig.start("t", "a")["result"]
    assert service(rig) == "Served"
    with worker.heard:
        worker.deaf = True
        assert service(rig) == "NoAnswer"
        worker.deaf = False
        order, worker.order = worker.order, None
        worker.refusal = ClusterError("CLUSTER-021", cause="no secret")
        assert service(rig) == "NoAnswer", "the master has not heard of the refusal"
        assert order is not None
        told = ProcessError(ErrCode="CLUSTER-021", Message="no secret")
        beat = worker._sign().model_copy(update={"refused": order.epoch, "refusal": told})
        rig.master.beat(beat)
        assert service(rig) == "Refused"
        worker.order, worker.refusal = order, None


def test_the_summary_does_not_read_the_text() -> None:
    result = ProcessResult(errors=(ProcessError(ErrCode="CLUSTER-021", Message="no secret"),), detail="said otherwise")
    status = SourceStatus(source="a", worker="w1", service=Service.REFUSED, result=result)
    report = SourceReport(source_status=status, sub_task_status=(SubTaskStatus(name="t", stage=Stage.NEW),))
    assert summary("t", [report]).startswith("Error - Worker w1 can't serve source a.")
