"""What a session is started with and asked: one that the server has ended is the loss of that session, not a bug."""

from __future__ import annotations

import locale
import sys
from pathlib import Path
from typing import Any

import pytest

from unshard.errors import EngineError
from unshard.spark.folders import sees
from unshard.spark.session import _spelling, slots
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
    assert caught.value.code == "ENGINE-009"
    assert makes_sense(caught.value)


@pytest.mark.parametrize(
    ("own", "system", "told"),
    [
        ("utf-8", "UTF-8", {}),
        ("utf-8", "ANSI_X3.4-1968", {"LC_ALL": "C.UTF-8"}),
        ("iso8859-1", "ISO-8859-1", {}),
    ],
)
def test_java_spells_names_of_files_as_this_process_does(
    own: str, system: str, told: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "getfilesystemencoding", lambda: own)
    monkeypatch.setattr(locale, "getencoding", lambda: system)
    assert _spelling() == told
