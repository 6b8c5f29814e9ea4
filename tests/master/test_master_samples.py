"""What masters tell Prometheus: who leads, and where workers are."""

from __future__ import annotations

from cluster_rig import Rig

from unshard.master.service import master_samples
from unshard.metrics.events import EVENTS
from unshard.metrics.of_process import CLUSTER
from unshard.metrics.registry import METRICS
from unshard.metrics.sample import exposition

LED = "dm_master_start_leader_counter"


def told(rig: Rig) -> dict[tuple[str, str], object]:
    samples = list(master_samples(rig.master))
    assert exposition(samples)
    return {(sample.name, sample.labels.get("worker", "")): sample.value for sample in samples}


def test_the_leader_tells_of_workers_and_sources(rig: Rig) -> None:
    rig.worker("free")
    lost = rig.worker("lost")
    rig.worker("at-work")
    rig.sources("s1", worker="at-work")
    rig.sources("s2", worker="lost")
    rig.lose(lost)
    found = told(rig)
    assert found["dm_master_worker_state", "lost"] == 0
    assert found["dm_master_worker_state", "free"] == 2  # the lost one's source has moved there
    assert (found["dm_master_worker_state", "at-work"], found["unshard_sources_unbound", ""]) == (2, 0)
    assert found["unshard_master_leader", ""] == 1
    assert {name for name, _ in found} == {metric.name for metric in CLUSTER} <= set(METRICS)


def test_who_gives_the_lead_back_tells_only_that(rig: Rig) -> None:
    led = EVENTS.value(LED)
    assert led >= 1
    rig.master.close()
    assert told(rig) == {("unshard_master_leader", ""): 0, (LED, ""): led}
