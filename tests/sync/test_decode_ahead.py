"""Slices of a large batch: in order, each once, and one is decoded while the one before is in use."""

from __future__ import annotations

from threading import Event
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

from unshard.binlog.rows import OpaqueDocuments
from unshard.errors import BinlogError
from unshard.model.table import Table, TableName
from unshard.sync.batch.plan import TablePlan, TargetPlan
from unshard.sync.batch.row_counts import Seen
from unshard.sync.steps import pipeline

SLICES = ((1, 2), (3,), (4,))


@pytest.fixture
def decoded(monkeypatch: pytest.MonkeyPatch) -> dict[int, Event]:
    """Ranges that are decoded as their own number; the event of each is set then."""
    events = {piece: Event() for pieces in SLICES for piece in pieces}

    name = TableName("d", "t")
    table = TablePlan(Table(name, (), ()), TargetPlan(1, name, (), ()))

    def decode(plan: Any, piece: int) -> tuple[list[tuple[Any, int]], Seen, tuple[OpaqueDocuments, ...]]:
        events[piece].set()
        if plan.broken == piece:
            raise BinlogError("BINLOG-001", values={"event": "WRITE_ROWS"})
        return [(table, piece)], Seen(), ()

    monkeypatch.setattr(pipeline, "decode_all", decode)
    monkeypatch.setattr(
        pipeline, "encode_changes", lambda plan, images, mine, ties: ([piece for _, piece in images], {0: len(images)})
    )
    return events


def ahead(broken: int = 0) -> Any:
    plan: Any = SimpleNamespace(slices=lambda: SLICES, broken=broken, reports_keys=False, stages=())
    return pipeline._decoded_ahead(plan, np.array([0]), pipeline.Clock())


def test_the_next_slice_is_decoded_meanwhile_and_none_behind_it(decoded: dict[int, Event]) -> None:
    slices = ahead()
    assert next(slices)[0] == [1, 2]
    assert decoded[3].wait(60)
    assert not decoded[4].wait(0.1)
    assert [found for found, _ in slices] == [[3], [4]]


def test_a_damaged_slice_stops_behind_those_before_it(decoded: dict[int, Event]) -> None:
    slices = ahead(broken=3)
    found: list[list[int]] = []
    with pytest.raises(BinlogError, match="BINLOG-001"):
        found.extend(changes for changes, _ in slices)
    assert found == [[1, 2]]
    assert not decoded[4].is_set()
