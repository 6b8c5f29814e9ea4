"""The first transaction of a time, in files without GTID events: MySQL before 5.7 with `gtid_mode` off."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from types import SimpleNamespace
from typing import Any

import pytest
from made_events import File, offsets
from made_logs import NAME

from unshard.model.position import Position
from unshard.source import position_at
from unshard.source.replica import Begin, Idle, Piece, ReplicaEvents


class Stream:
    """The events of a file in pieces of `count` events."""

    def __init__(self, file: File, count: int) -> None:
        self.file, self.count, self.position = file, count, Position(NAME, 4)
        self.chain = SimpleNamespace(checksum=file.checksum)

    def pieces(self, idle_seconds: float) -> Iterator[Piece]:
        yield Begin(self.position)
        places = [*offsets(bytes(self.file.data))[:: self.count], len(self.file.data)]
        for start, end in pairwise(places):
            self.position = Position(NAME, end)
            yield ReplicaEvents(Position(NAME, start), memoryview(self.file.data)[start:end])
        yield Idle(at_end=True)

    def close(self) -> None:
        """Nothing is open."""


def transaction(file: File, timestamp: int, end: str = "xid") -> int:
    at = file.query("BEGIN", timestamp=timestamp)
    file.query("SAVEPOINT `p`", timestamp=timestamp)
    file.table_map()
    file.rows()
    if end == "xid":
        file.xid(timestamp=timestamp)
    else:
        file.query(end, timestamp=timestamp)
    return at


@pytest.mark.parametrize("checksum", [True, False])
@pytest.mark.parametrize("count", [1, 3])
def test_a_transaction_and_a_statement_begin_with_their_query(
    checksum: bool, count: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = File(checksum=checksum, version=b"5.6.51-log")
    places = {
        10: transaction(file, 10),
        20: transaction(file, 20, "COMMIT"),
        30: file.query("CREATE TABLE t (x INT)", timestamp=30),
        40: file.query("DROP TABLE t", timestamp=40),
        50: transaction(file, 50, "ROLLBACK"),
        60: transaction(file, 60),
    }

    def stream(*_: Any) -> Stream:
        return Stream(file, count)

    monkeypatch.setattr(position_at, "_stream", stream)
    newest = Position(NAME, len(file.data))
    for moment in range(1, 70):
        found = position_at._first_from(None, None, NAME, moment, newest)  # type: ignore[arg-type]
        expected = next((at for time, at in places.items() if time >= moment), None)
        assert found == (Position(NAME, expected) if expected is not None else None), moment
