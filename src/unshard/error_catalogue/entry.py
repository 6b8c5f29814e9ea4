"""One row of the error catalogue."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Entry:
    """Text, remedy, and whether a retry may help: the same call may succeed later with nothing changed."""

    message: str
    hint: str
    retryable: bool = False
