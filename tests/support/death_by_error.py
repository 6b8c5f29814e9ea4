"""A death of the driver within this process: an error at a crash point, where a SIGKILL would cost a new JVM."""

from __future__ import annotations

from typing import NoReturn

import pytest

from unshard import crash_point
from unshard.errors import EngineError

CODE = "ENGINE-010"


def die_by_error(patch: pytest.MonkeyPatch, place: str) -> None:
    """Let the driver end by an EngineError with that code, whose cause is the place, as soon as it comes there.

    As after a death nothing goes on: whoever would try again meets the same error at the next crash point.
    """

    def die() -> NoReturn:
        patch.setattr(crash_point, "_is_counted", lambda name: True)
        raise EngineError(CODE, cause=place)

    crash_point._reached.clear()
    patch.setattr(crash_point, "_die", die)
    patch.setenv(crash_point.AT, place)
    patch.delenv(crash_point.MARKER, raising=False)
