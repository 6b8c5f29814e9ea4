"""The seconds of a batch and of its steps: means between two points."""

from __future__ import annotations

from pathlib import Path

from page_served import page_served, status
from test_page import client

from unshard.web.page.figures import Health, SubtaskFigures, TaskFigures
from unshard.web.page.step_times import POINTS, WHOLE, StepTimes

FINE = Health("fine", "running")


def task(*sources: tuple[str, int | None, float, float]) -> TaskFigures:
    """Of each source its batches, their seconds, and those of `apply`."""
    made = tuple(
        SubtaskFigures(
            "t", name, "w", FINE, "sync", True, batches=batches, batch_seconds=whole, step_seconds=(("apply", apply),)
        )
        for name, batches, whole, apply in sources
    )
    return TaskFigures("t", FINE, made, (), (), ())


def test_means_are_of_all_sources_between_two_points() -> None:
    times = StepTimes()
    times.keep([task(("s1", 10, 5.0, 2.0), ("s2", 0, 0.0, 0.0))], 100)
    assert times.history("t") == {}
    times.keep([task(("s1", 12, 6.0, 3.0), ("s2", 2, 3.0, 1.0))], 110)
    assert times.history("t") == {"apply": [(110, 0.5)], WHOLE: [(110, 1.0)]}
    times.keep([task(("s1", 12, 6.0, 3.0), ("s2", 2, 3.0, 1.0))], 120)
    assert len(times.history("t")[WHOLE]) == 1, "no batch, no mean"
    times.keep([task(("s1", 1, 0.5, 0.5), ("s2", None, 0.0, 0.0))], 130)
    assert len(times.history("t")[WHOLE]) == 1, "a run that counts anew gives none yet"
    times.keep([task(("s1", 2, 2.5, 0.75))], 140)
    assert times.history("t")[WHOLE][-1] == (140, 2.0)
    times.keep([], 150)
    assert times.history("t") == {}


def test_two_hours_are_kept() -> None:
    times = StepTimes()
    for at in range(POINTS + 50):
        times.keep([task(("s1", at, float(at), 0.0))], 10 * at)
    assert len(times.history("t")[WHOLE]) == POINTS
    assert times.history("none") == {}


def test_the_chart_has_them(tmp_path: Path) -> None:
    with page_served(tmp_path, status()) as page, client(page, "vic") as browser:
        reader = page.server._app.state.page
        for batches in (2, 6):
            told = status()
            assert told.sync is not None
            times = {"batches": batches, "batch_seconds": 0.5 * batches, "step_seconds": {"apply": 0.1 * batches}}
            reader._due = 0.0
            page.set(told.model_copy(update={"sync": told.sync.model_copy(update=times)}))
        found = browser.get("tasks/shop/steps").json()
        assert {step: [seconds for _, seconds in points] for step, points in found.items()} == {
            "apply": [0.1, 0.1],
            WHOLE: [0.5, 0.5],
        }
        assert "data-from" in browser.get("tasks/shop").text
