"""Tools beside which we are measured: one whose own threads deadlock is begun again, any other failure is told."""

from __future__ import annotations

import pytest
from bench.peers import PeerFailedError

from bench import peers

DEADLOCK = "myloader ended with 1: Deadlock found when trying to get lock"


class Runs:
    """Runs of a tool: so many that fail with these words, then one of seven seconds."""

    def __init__(self, failures: int, says: str) -> None:
        self.failures, self.says, self.count = failures, says, 0

    def timed(self, command: list[str]) -> float:
        self.count += 1
        if self.count <= self.failures:
            raise PeerFailedError(f"{command[0]}: {self.says}")
        return 7.0


def test_a_run_whose_own_threads_deadlock_is_no_result(monkeypatch: pytest.MonkeyPatch) -> None:
    runs = Runs(3, DEADLOCK)
    monkeypatch.setattr(peers, "_timed", runs.timed)
    assert peers._without_deadlock(["myloader"]) == 7.0
    assert runs.count == 4


@pytest.mark.parametrize(("says", "count"), [(DEADLOCK, 4), ("Access denied", 1)])
def test_another_failure_is(says: str, count: int, monkeypatch: pytest.MonkeyPatch) -> None:
    runs = Runs(9, says)
    monkeypatch.setattr(peers, "_timed", runs.timed)
    with pytest.raises(PeerFailedError, match=says):
        peers._without_deadlock(["myloader"])
    assert runs.count == count
