"""Two hours of figures outlive the master that led: the workers have kept them, and the next leader asks for them."""

from __future__ import annotations

import copy
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx
import pytest
from page_served import PageServed, TellingLink, page_served, status
from served import bearer, tokens

from unshard.api.status import FigureHistory, FigurePoint, Stage, TaskHistory
from unshard.config.listener import ListenerConfig
from unshard.errors import ClusterError
from unshard.model.position import Location, Position
from unshard.sync.status import Meter
from unshard.web.audit import AuditLog
from unshard.web.links import HttpWorkerLink
from unshard.web.page.reader import StateReader
from unshard.web.page.restored import replayed
from unshard.web.page.step_times import WHOLE
from unshard.web.server import WebServer
from unshard.web.worker_app import worker_app
from unshard.worker import history
from unshard.worker.history import POINTS, FigureRing
from unshard.worker.status import SubtaskStatus

NOW = 1_800_000_000


def kept(*lags: int | None, until: int = NOW, task: str = "shop") -> FigureHistory:
    """A point every ten seconds; a batch of half a second ends in each of them."""
    first = until - 10 * len(lags)
    points = tuple(
        FigurePoint(
            at=first + 10 * number, lag=lag, rows_per_second=100 + number, batches=number,
            batch_seconds=0.5 * number, step_seconds={"apply": 0.25 * number},
        )
        for number, lag in enumerate(lags)
    )  # fmt: skip
    return FigureHistory(tasks=(TaskHistory(task=task, points=points),))


@pytest.fixture
def page(tmp_path: Path) -> Iterator[PageServed]:
    with page_served(tmp_path, status(), sources=("s1", "s2")) as made:
        yield made


def leader(page: PageServed) -> StateReader:
    """The reader of a master that begins to lead; it has read once."""
    made = StateReader(page.master)
    made.look()
    return made


def test_a_new_leader_has_the_points_of_all_workers(page: PageServed) -> None:
    now = int(time.time())
    page.link.kept, page.other.kept = kept(*range(600), until=now), kept(*range(300), until=now)
    reader = leader(page)
    points = reader.history("shop")
    assert [len(points[source]) for source in ("s1", "s2")] == [601, 301], "and one of its own"
    assert [lag for _, lag, _ in points["s1"]][:3] == [0, 1, 2]
    assert points["s1"][-1][1] == 2, "as its worker tells now"
    assert sorted(points["s1"]) == points["s1"]
    steps = reader.step_history("shop")
    assert {seconds for _, seconds in steps[WHOLE]} == {0.5}
    assert len(steps["apply"]) > 590
    trend = reader.now.trends["shop"].minutes
    assert len(trend) == 60
    assert trend[-30:-1].count(None) == 0
    assert trend[5] is None, "of one of its sources it is not known what it was then"


def test_a_worker_that_does_not_answer_yet_is_asked_again(page: PageServed) -> None:
    answers, given = [False], kept(*range(50), until=int(time.time()))

    def late(seconds: float) -> FigureHistory:
        if not answers[0]:
            raise ClusterError("CLUSTER-023")
        return given

    page.link.history = late  # type: ignore[method-assign]
    reader = leader(page)
    assert len(reader.history("shop")["s1"]) == 1
    answers[0] = True
    reader._due = 0.0
    reader.look()
    assert len(reader.history("shop")["s1"]) > 50


def test_nobody_is_asked_for_the_past_while_points_are_kept(page: PageServed) -> None:
    asked: list[str] = []
    master, statuses = copy.copy(page.master), copy.copy(page.master.statuses)  # the page has a reader of its own
    statuses.history = lambda source: asked.append(source) or FigureHistory()  # type: ignore[func-returns-value, method-assign]
    master.statuses = statuses
    reader = StateReader(master)
    reader.look()
    for _ in range(5):
        reader._due = 0.0
        reader.look()
    assert sorted(asked) == ["s1", "s2"]
    reader._kept_at -= 60
    reader._due = 0.0
    reader.look()
    assert len(asked) == 4, "it has not led for a minute"


def test_a_source_without_a_point_is_unknown_in_the_past() -> None:
    found = replayed({"s1": kept(1, 2, 3), "s2": kept(7)}, {"shop": ("s1", "s2")}, NOW - 5)
    assert [at for at, _ in found] == [NOW - 30, NOW - 20, NOW - 10]
    assert [tasks[0].lag for _, tasks in found] == [None, None, 7]
    assert [tasks[0].rows_per_second for _, tasks in found] == [None, None, 202]
    assert replayed({"s1": kept(1)}, {}, NOW) == [(NOW - 10, [])], "a task that has ended meanwhile"


@dataclass
class Hosted:
    """A subtask that replicates, or copies where it has no meter."""

    meter: Meter | None
    stage: Stage = Stage.RUNNING

    def reading(self, *, asks: bool) -> SubtaskStatus:
        assert not asks, "a point costs no server anything"
        if self.meter is None:
            return SubtaskStatus("s1", "load")
        return SubtaskStatus("s1", "sync", sync=self.meter.read(1000.0, None))


def ring(monkeypatch: pytest.MonkeyPatch, subtasks: dict[str, Any], points: int) -> FigureRing:
    monkeypatch.setattr(history, "POINT_SECONDS", 0.0)
    made = FigureRing()
    for _ in range(points):
        made.keep(subtasks)
    return made


def test_a_worker_keeps_a_point_of_each_task_that_replicates(monkeypatch: pytest.MonkeyPatch) -> None:
    meter = Meter(location=Location(Position("b.000001", 4)))
    subtasks: dict[str, Any] = {"a": Hosted(meter), "b": Hosted(None), "c": Hosted(meter, Stage.PAUSED)}
    made = ring(monkeypatch, subtasks, 3)
    told = {one.task: one.points for one in made.told().tasks}
    assert {task: len(points) for task, points in told.items()} == {"a": 3, "c": 3}
    assert (told["a"][0].rows_per_second, told["c"][0].rows_per_second) == (0, None)
    made.keep({"a": subtasks["a"]})
    assert [one.task for one in made.told().tasks] == ["a"], "one that has ended is forgotten"


def test_a_worker_keeps_two_hours_and_no_more_than_a_point_in_ten_seconds(monkeypatch: pytest.MonkeyPatch) -> None:
    subtasks: dict[str, Any] = {"a": Hosted(Meter(location=Location(Position("b.000001", 4))))}
    (told,) = ring(monkeypatch, subtasks, POINTS + 5).told().tasks
    assert len(told.points) == POINTS
    monkeypatch.setattr(history, "POINT_SECONDS", 3600.0)
    made = FigureRing()
    for _ in range(5):
        made.keep(subtasks)
    assert len(made.told().tasks[0].points) == 1
    subtasks["b"] = Hosted(None)
    made.keep(subtasks)
    subtasks["b"].meter = subtasks["a"].meter
    for _ in range(2):
        made.keep(subtasks)
    assert [(one.task, len(one.points)) for one in made.told().tasks] == [("a", 1), ("b", 1)], "its first comes at once"


def test_it_goes_over_http_to_masters_alone(tmp_path: Path) -> None:
    worker = TellingLink(status())
    worker.kept = kept(*range(720))
    config = ListenerConfig(token_file=str(tokens(tmp_path, mia="master", vic="viewer")))
    server = WebServer(worker_app(worker, AuditLog(str(tmp_path / "audit")), tuple, {}), config, "127.0.0.1:0")
    server.start()
    try:
        with httpx.Client(base_url=f"http://{server.address}", headers=bearer("mia"), timeout=60) as client:
            assert HttpWorkerLink("w1:1", client, 60.0).history(60.0) == worker.kept
            assert client.get("/worker/v1/history", headers=bearer("vic")).status_code == 403
    finally:
        server.stop(1)
    transport = httpx.MockTransport(lambda request: httpx.Response(404, json={"detail": "Not Found"}))
    older = HttpWorkerLink("w1:1", httpx.Client(transport=transport, base_url="http://w1:1"), 5.0)
    with pytest.raises(ClusterError, match="CLUSTER-039"):
        older.history(1.0)
