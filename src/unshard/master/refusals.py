"""Keeps the refusals of sources by workers, as this leader has heard them.

| a refusal is over | because |
|---|---|
| the worker serves the source | it could begin |
| the worker is another process | a secret or a folder may be there now |
| the source's file has changed | it may name another secret |

It is kept in memory only: a new leader hears it again.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from threading import Lock

from unshard.api.heartbeat import Heartbeat
from unshard.api.status import ProcessError
from unshard.master.state import SourceRow, State


@dataclass(frozen=True, slots=True)
class Refusal:
    """A worker's refusal: the process that refused, the text of the source's file, and why."""

    life: str
    text: str = field(repr=False)
    error: ProcessError


class Refusals:
    """The refusals of sources by workers that could not begin with them. Safe in threads."""

    def __init__(self) -> None:
        self._found: dict[str, dict[str, Refusal]] = {}
        self._lives: dict[str, str] = {}
        self._lock = Lock()

    def heard(self, state: State, beat: Heartbeat) -> None:
        """Record what a beat says of the source that is bound to its worker."""
        bound = state.bound_to(beat.name)
        with self._lock:
            self._lives[beat.name] = beat.life
            row = state.sources.get(bound.source) if bound is not None else None
            if bound is None or row is None:
                return
            if beat.epoch == bound.epoch:
                self._found.get(row.name, {}).pop(beat.name, None)
            elif beat.refused == bound.epoch and beat.refusal is not None:
                self._found.setdefault(row.name, {})[beat.name] = Refusal(beat.life, row.text, beat.refusal)

    def of(self, row: SourceRow) -> dict[str, ProcessError]:
        """Return the workers that have refused the source as it is now, each with the reason."""
        with self._lock:
            found = self._found.get(row.name, {})
            return {
                worker: refusal.error
                for worker, refusal in found.items()
                if refusal.text == row.text and refusal.life == self._lives.get(worker)
            }

    def by(self, state: State, worker: str) -> dict[str, ProcessError]:
        """Return the sources that the worker has refused, each with the reason."""
        found = {name: self.of(row).get(worker) for name, row in state.sources.items()}
        return {name: error for name, error in found.items() if error is not None}
