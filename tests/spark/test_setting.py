"""What is asked of a session that the server has ended is the loss of that session, not a bug."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from unshard.errors import EngineError
from unshard.spark.folders import sees
from unshard.spark.session import slots
from unshard.worker.auto_resume import makes_sense


class Ended:
    """A session of Spark Connect that the server has closed, as it does with one that is idle for an hour."""

    @property
    def conf(self) -> Any:
        raise RuntimeError("[INVALID_HANDLE.SESSION_CLOSED] The handle is invalid. Session was closed.")


@pytest.mark.parametrize("ask", [slots, lambda session: sees(session, Path("/tmp/x"))], ids=["slots", "sees"])
def test_a_session_that_the_server_has_ended_is_lost(ask: Any) -> None:
    with pytest.raises(EngineError) as caught:
        ask(Ended())
    assert caught.value.code == "ENGINE-009" and makes_sense(caught.value)
