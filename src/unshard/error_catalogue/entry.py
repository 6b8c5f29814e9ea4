"""One row of the error catalogue."""

from __future__ import annotations

from dataclasses import dataclass

ANEW = "begin anew by `unshard run TASK.yaml --reset` (a cluster: `stop-task`, then `start-task --reset`)"
"""What to do where a copy can't go on."""


@dataclass(frozen=True, slots=True)
class CatalogueEntry:
    """The text of an error, its remedy, and whether a retry may help.

    `retryable`: the same call may succeed later with nothing changed.
    """

    message: str
    hint: str
    retryable: bool = False
