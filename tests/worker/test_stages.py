"""The stage machine, cell by cell, and that nothing gets lost in it."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from unshard.api.stage import Stage
from unshard.worker.stages import Event, after, towards

WORKING = frozenset({Stage.RUNNING, Stage.PAUSING, Stage.RESUMING, Stage.STOPPING})
"""A unit works, and its end is still to come."""


@pytest.mark.parametrize(
    ("stage", "event", "then"),
    [
        (Stage.NEW, Event.RUN, Stage.RUNNING),
        (Stage.RUNNING, Event.FAIL, Stage.PAUSED),
        (Stage.RUNNING, Event.FINISH, Stage.FINISHED),
        (Stage.RUNNING, Event.PAUSE, Stage.PAUSING),
        (Stage.PAUSING, Event.REST, Stage.PAUSED),
        (Stage.PAUSED, Event.RESUME, Stage.RESUMING),
        (Stage.RESUMING, Event.RUN, Stage.RUNNING),
        (Stage.PAUSING, Event.STOP, Stage.STOPPING),
        (Stage.STOPPING, Event.FAIL, Stage.STOPPED),
        (Stage.PAUSED, Event.STOP, Stage.STOPPED),
        (Stage.PAUSED, Event.PAUSE, Stage.PAUSED),
        (Stage.STOPPED, Event.RUN, Stage.STOPPED),
        (Stage.FINISHED, Event.RESUME, Stage.FINISHED),
    ],
)
def test_each_step_of_the_table(stage: Stage, event: Event, then: Stage) -> None:
    assert after(stage, event) is then


@given(st.lists(st.sampled_from(Event)), st.sampled_from([Stage.RUNNING, Stage.PAUSED, Stage.STOPPED]))
def test_what_is_wanted_is_reached_from_anywhere(events: list[Event], wanted: Stage) -> None:
    """Whatever has happened, saying what `towards` tells and letting the unit end or begin leads there."""
    stage = Stage.NEW
    for event in events:
        stage = after(stage, event)
    for _ in range(4):
        asked = towards(stage, wanted)
        if asked is not None:
            stage = after(stage, asked)
        if stage in WORKING and stage is not wanted:
            stage = after(stage, Event.RUN if stage is Stage.RESUMING else Event.REST)
    ended = {Stage.STOPPED, Stage.FINISHED} if wanted is not Stage.STOPPED else {Stage.STOPPED}
    assert stage is wanted or stage in ended


def test_what_is_passed_through_is_never_asked_for() -> None:
    with pytest.raises(ValueError, match="never asked for"):
        towards(Stage.NEW, Stage.PAUSING)
