"""The stage machine, cell by cell, and that nothing gets lost in it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unshard.api.status import Stage
from unshard.worker.stages import StageEvent, after, towards

WORKING = frozenset({Stage.RUNNING, Stage.PAUSING, Stage.RESUMING, Stage.STOPPING})
"""A unit works, and its end is still to come."""


@pytest.mark.parametrize(
    ("stage", "event", "then"),
    [
        (Stage.NEW, StageEvent.RUN, Stage.RUNNING),
        (Stage.RUNNING, StageEvent.FAIL, Stage.PAUSED),
        (Stage.RUNNING, StageEvent.FINISH, Stage.FINISHED),
        (Stage.RUNNING, StageEvent.PAUSE, Stage.PAUSING),
        (Stage.PAUSING, StageEvent.REST, Stage.PAUSED),
        (Stage.PAUSED, StageEvent.RESUME, Stage.RESUMING),
        (Stage.RESUMING, StageEvent.RUN, Stage.RUNNING),
        (Stage.PAUSING, StageEvent.STOP, Stage.STOPPING),
        (Stage.STOPPING, StageEvent.FAIL, Stage.STOPPED),
        (Stage.PAUSED, StageEvent.STOP, Stage.STOPPED),
        (Stage.PAUSED, StageEvent.PAUSE, Stage.PAUSED),
        (Stage.STOPPED, StageEvent.RUN, Stage.STOPPED),
        (Stage.FINISHED, StageEvent.RESUME, Stage.FINISHED),
    ],
)
def test_each_step_of_the_table(stage: Stage, event: StageEvent, then: Stage) -> None:
    assert after(stage, event) is then


@given(st.lists(st.sampled_from(StageEvent)), st.sampled_from([Stage.RUNNING, Stage.PAUSED, Stage.STOPPED]))
def test_what_is_wanted_is_reached_from_anywhere(events: list[StageEvent], wanted: Stage) -> None:
    """Whatever has happened, saying what `towards` tells and letting the unit end or begin leads there."""
    stage = Stage.NEW
    for event in events:
        stage = after(stage, event)
    for _ in range(4):
        asked = towards(stage, wanted)
        if asked is not None:
            stage = after(stage, asked)
        if stage in WORKING and stage is not wanted:
            stage = after(stage, StageEvent.RUN if stage is Stage.RESUMING else StageEvent.REST)
    ended = {Stage.STOPPED, Stage.FINISHED} if wanted is not Stage.STOPPED else {Stage.STOPPED}
    assert stage is wanted or stage in ended


def test_what_is_passed_through_is_never_asked_for() -> None:
    with pytest.raises(ValueError, match="never asked for"):
        towards(Stage.NEW, Stage.PAUSING)
