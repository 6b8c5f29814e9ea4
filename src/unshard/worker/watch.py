"""A server's answers for the status: it is asked at most every few seconds, on a connection of its own.

`UpstreamWatch`: how far the source is ahead. `TargetWatch`: for whom a step that takes long waits in the target.
"""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from threading import Lock, Thread
from typing import Generic, TypeVar

from unshard.errors import UnshardError
from unshard.mysql.connection import LOOK_SECONDS, Endpoint, session
from unshard.mysql.flavour import identify
from unshard.source.upstream import Upstream, read_upstream
from unshard.sync.checkpoint.store import CheckpointStore
from unshard.target.waits import standstill

REFRESH_SECONDS = 2.0
OWN_PACE_SECONDS = 10.0
"""How often the target is asked what holds up a step that takes long, where nobody asks for a status."""
WAIT_SECONDS = 0.2
"""How long a look waits: a source that writes a large transaction to its binlog answers nobody meanwhile."""
SLOW_SECONDS = 5.0
"""How long a step may take before the target is asked what holds it up."""

Seen = TypeVar("Seen")


@dataclass(slots=True)
class _Watch(Generic[Seen]):
    """A cache of the last answer of a server, which is asked in the background. Any thread may read it."""

    endpoint: Endpoint = field(repr=False)
    _seen: Seen | None = field(default=None, init=False)
    _due: float = field(default=0.0, init=False)
    _asking: Thread | None = field(default=None, init=False)
    _looking: Lock = field(default_factory=Lock, init=False)

    def look(self) -> Seen | None:
        """Return the last answer, REFRESH_SECONDS old where the server answers at once; None without one.

        Takes WAIT_SECONDS at most: a server that is slow to answer doesn't hold up what is shown of others.
        """
        with self._looking:
            self._start()
            if self._asking is not None:
                self._asking.join(WAIT_SECONDS)
            return self._seen

    def _start(self) -> None:
        """Begin to ask where that is due."""
        if self._asking is not None and not self._asking.is_alive():
            self._asking = None
        if self._asking is None and time.monotonic() >= self._due:
            self._asking = Thread(target=self._ask, name="watch", daemon=True)
            self._asking.start()

    def _ask(self) -> None:
        self._seen = self._look()
        self._due = time.monotonic() + REFRESH_SECONDS

    def _look(self) -> Seen | None:
        raise NotImplementedError


@dataclass(slots=True)
class UpstreamWatch(_Watch[Upstream]):
    """The source's newest position, as it was last seen; unknown while the source is out of reach."""

    def _look(self) -> Upstream | None:
        try:
            with session(self.endpoint, "source", patience_seconds=LOOK_SECONDS) as connection:
                return read_upstream(connection, identify(connection))
        except UnshardError:
            return None  # the relay meets the same trouble, reports it and decides


@dataclass(slots=True)
class TargetWatch(_Watch[tuple[float, str]]):
    """The reason why the source's sync waits in the target, and the step in which it was seen."""

    store: CheckpointStore
    step: float = field(default=0.0, init=False)

    def begin(self, begun: float) -> None:
        """Ask why the step that began at `begun` takes so long, every OWN_PACE_SECONDS, and wait for no answer."""
        now, due = time.monotonic(), self._due + OWN_PACE_SECONDS - REFRESH_SECONDS
        if now - begun >= SLOW_SECONDS and now >= due and self._looking.acquire(blocking=False):
            try:
                self.step = begun
                self._start()
            finally:
                self._looking.release()

    def note(self, begun: float, *, asks: bool = True) -> str:
        """Return why the step that began at `begun` (monotonic) takes so long; "" where it waits for nothing.

        Unless it `asks`, as far as that is known.
        """
        if time.monotonic() - begun < SLOW_SECONDS:
            return ""
        if asks:
            self.step = begun
        step, why = (self.look() if asks else self._seen) or (begun, "")
        return "; ".join(part for part in (self.store.failed, why if step == begun else "") if part)

    def _look(self) -> tuple[float, str]:
        step, store = self.step, self.store
        try:
            with session(self.endpoint, "target", patience_seconds=LOOK_SECONDS) as connection:
                return step, standstill(connection, store.meta, store.source, store.session)
        except UnshardError as error:
            return step, f"the target can't be asked what holds it up: {error.cause or error.message}"
