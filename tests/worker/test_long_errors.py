"""An error may hold a statement of any length (an INSERT that was logged as one); every beat has to carry it."""

from __future__ import annotations

from datetime import UTC, datetime

from unshard.api.heartbeat import Heartbeat, SubtaskBrief
from unshard.api.status import Stage
from unshard.config.listener import ListenerConfig
from unshard.errors import LONGEST_TEXT, DdlError, Where
from unshard.worker.report import process_error


def test_beats_of_a_task_that_a_huge_statement_stopped_are_short() -> None:
    """Else the master would refuse them, take the worker for lost, and the next one would fare the same."""
    statement = f"INSERT INTO t VALUES {'(1), ' * 4_000_000}(2) -- end"
    error = DdlError("DDL-002", Where("s1", "a.t", "bin.000001:4"), statement, {"statement": statement})
    told = process_error(error, datetime.now(UTC))
    brief = SubtaskBrief(task="t", stage=Stage.PAUSED, error=told)
    beat = Heartbeat(name="w1", addr="w1:1", subtasks=(brief,) * 20).model_dump_json(by_alias=True)
    assert len(statement) > ListenerConfig().max_request_bytes > len(beat)
    assert "INSERT INTO t" in told.message
    assert "(2) -- end [source s1" in told.message
    assert f"{len(statement) - LONGEST_TEXT} characters more" in told.raw_cause


def test_others_are_told_in_full() -> None:
    told = process_error(DdlError("DDL-002", Where("s1"), "é" * LONGEST_TEXT, {"statement": "x"}), datetime.now(UTC))
    assert told.raw_cause == "é" * LONGEST_TEXT
