from __future__ import annotations

from unshard.binlog.event_kinds import KIND_TABLE
from unshard.binlog.events import BY_CODE, EVENTS, REFUSED, event_of
from unshard.kernels.scan import KINDS


def test_each_event_has_its_own_code_and_name() -> None:
    assert len(BY_CODE) == len(EVENTS)
    assert len({event.name for event in EVENTS}) == len(EVENTS)


def test_what_is_refused_says_why_and_what_to_do() -> None:
    for event in EVENTS:
        assert (event.kind == REFUSED) == bool(event.reason) == bool(event.remedy)


def test_codes_without_a_row_are_refused() -> None:
    unknown = set(range(256)) - set(BY_CODE)
    assert {KIND_TABLE[code] for code in unknown} == {KINDS[REFUSED]}
    assert "99" in event_of(99).name
