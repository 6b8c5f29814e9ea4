"""Which worker gets which source: the same answer for the same cluster, and never one worker for two sources."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from unshard.api.heartbeat import SubtaskBrief
from unshard.api.status import Stage
from unshard.master.scheduler import Assignment, seat, worker_fault
from unshard.master.state import Bound, SourceRow, State, SubtaskRow, WorkerRow

NAMES = ("a", "b", "c", "d")
WORKERS = ("w1", "w2", "w3", "w4", "w5")


def state(bounds: dict[str, str], last: dict[str, str] | None = None, hosts: dict[str, str] | None = None) -> State:
    last = last or {}
    sources = {name: SourceRow(name, "", last_worker=last.get(name, "")) for name in NAMES}
    workers = {name: WorkerRow(name, (hosts or {}).get(name, name) + ":8262") for name in WORKERS}
    made = {source: Bound(source, worker, number) for number, (source, worker) in enumerate(bounds.items(), 1)}
    return State(sources, workers, made)


def test_sources_are_spread_over_machines() -> None:
    hosts = {"w1": "one", "w2": "one", "w3": "one", "w4": "two", "w5": "three"}
    found = seat(state({"a": "w1"}, hosts=hosts), WORKERS)
    assert found == Assignment((), (("b", "w4"), ("c", "w5"), ("d", "w2")))


def test_a_source_goes_back_to_the_worker_that_has_its_relay_log() -> None:
    found = seat(state({}, {"a": "w3", "b": "w1"}), ("w1", "w2", "w3"))
    assert dict(found.bind) == {"a": "w3", "b": "w1", "c": "w2"}


def test_a_source_leaves_the_spare_that_another_one_wants() -> None:
    assert dict(seat(state({}, {"c": "w1"}), ("w1", "w2", "w3")).bind) == {"a": "w2", "b": "w3", "c": "w1"}


def test_a_lost_worker_s_source_moves_and_the_others_stay() -> None:
    before = state({"a": "w1", "b": "w2", "c": "w3", "d": "w4"})
    assert seat(before, {"w2", "w3", "w4", "w5"}) == Assignment(("a",), (("a", "w5"),))
    assert seat(before, {"w2", "w3", "w4"}) == Assignment(("a",), ())
    assert not seat(before, WORKERS)


def test_a_new_leader_takes_nothing_from_workers_that_it_has_not_heard() -> None:
    before = state({"a": "w1"})
    assert not seat(before, (), presumed=WORKERS)
    assert dict(seat(before, {"w2"}, presumed={"w1"}).bind) == {"b": "w2"}


def test_a_worker_that_has_refused_a_source_gets_it_only_where_no_other_is_free() -> None:
    before = state({"b": "w3", "c": "w4", "d": "w5"}, {"a": "w1"})
    assert seat(before, WORKERS).bind == (("a", "w1"),)
    assert seat(before, WORKERS, refused={"a": {"w1"}}).bind == (("a", "w2"),)
    assert seat(before, WORKERS, refused={"a": {"w1", "w2"}}).bind == (("a", "w1"),)


def test_unfinished_copies_come_first() -> None:
    row = SubtaskRow("t", "d", Stage.RUNNING, brief=SubtaskBrief(task="t", stage=Stage.RUNNING, unit="Load"))
    before = state({}, {"d": "w1"})
    copying = State(before.sources, before.workers, {}, {}, {("t", "d"): row})
    assert seat(copying, {"w1"}).bind == (("d", "w1"),)


def stranded(bounds: dict[str, str], dump_at: str) -> State:
    """Source d, whose load is without its dump."""
    before = state(bounds)
    brief = SubtaskBrief(task="t", stage=Stage.PAUSED, unit="Load", dump_at=dump_at, lost_dump=True)
    row = SubtaskRow("t", "d", Stage.RUNNING, brief=brief)
    return State(before.sources, before.workers, before.bounds, {}, {("t", "d"): row})


def test_a_source_goes_back_to_the_worker_that_has_its_dump() -> None:
    bounds = {"a": "w1", "b": "w2", "c": "w3", "d": "w4"}
    assert seat(stranded(bounds, "w5"), WORKERS) == Assignment((), (("d", "w5"),), ("d",))
    assert seat(stranded(bounds, "w2"), WORKERS[:4]) == Assignment((), (("d", "w2"), ("b", "w4")), ("d",)), "they swap"
    assert not seat(stranded(bounds, "w5"), WORKERS[:4]), "it is not back"
    assert not seat(stranded(bounds, "w4"), WORKERS), "it has lost it itself"
    assert not seat(stranded(bounds, ""), WORKERS)


def test_who_can_take_a_source() -> None:
    before = state({"a": "w1"})
    assert worker_fault(before, "w1", WORKERS) == "it serves source a"
    assert worker_fault(before, "w2", ()) == "it is offline"
    assert worker_fault(before, "x", WORKERS) == "there is no such worker"
    assert worker_fault(before, "w2", WORKERS) == ""


@given(
    st.dictionaries(st.sampled_from(NAMES), st.sampled_from(WORKERS), max_size=4),
    st.frozensets(st.sampled_from(WORKERS)),
)
def test_no_worker_serves_two_and_no_source_waits_beside_a_spare(
    wanted: dict[str, str], online: frozenset[str]
) -> None:
    bounds = {source: worker for worker, source in {worker: source for source, worker in wanted.items()}.items()}
    found = seat(state(bounds), online)
    after = {source: worker for source, worker in bounds.items() if source not in found.unbind} | dict(found.bind)
    assert len(set(after.values())) == len(after)
    assert set(after.values()) <= online
    assert len(after) == min(len(NAMES), len(online))
    assert all(bounds[source] not in online for source in found.unbind)
