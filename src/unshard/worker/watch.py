"""What a server says when a status is asked for: asked at most every few seconds, on a connection of its own.

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
WAIT_SECONDS = 0.2
"""How long a look waits: a source that writes a large transaction to its binlog answers nobody meanwhile."""
SLOW_SECONDS = 5.0
"""How long a step may take before the target is asked what holds it up."""

Seen = TypeVar("Seen")


@dataclass(slots=True)
class _Watch(Generic[Seen]):
    """What a server has said last. Any thread may look."""

    endpoint: Endpoint = field(repr=False)
    _seen: Seen | None = field(default=None, init=False)
    _due: float = field(default=0.0, init=False)
    _asking: Thread | None = field(default=None, init=False)
    _looking: Lock = field(default_factory=Lock, init=False)

    def look(self) -> Seen | None:
        """The last answer, REFRESH_SECONDS old where the server answers at once; None without one.

        Takes WAIT_SECONDS at most: a server that is slow to answer doesn't hold up what is shown of others.
        """
        with self._looking:
            if self._asking is None and time.monotonic() >= self._due:
                self._asking = Thread(target=self._ask, name="watch", daemon=True)
                self._asking.start()
            if self._asking is not None:
                self._asking.join(WAIT_SECONDS)
                if not self._asking.is_alive():
                    self._asking = None
            return self._seen

    def _ask(self) -> None:
        self._seen = self._look()
        self._due = time.monotonic() + REFRESH_SECONDS

    def _look(self) -> Seen | None:
        raise NotImplementedError


@dataclass(slots=True)
class UpstreamWatch(_Watch[Upstream]):
    """The source's newest position as last seen. While the source is away it knows nothing."""

    def _look(self) -> Upstream | None:
        try:
            with session(self.endpoint, "source", patience_seconds=LOOK_SECONDS) as connection:
                return read_upstream(connection, identify(connection))
        except UnshardError:
            return None  # the relay meets the same trouble, reports it and decides


@dataclass(slots=True)
class TargetWatch(_Watch[tuple[float, str]]):
    """What holds up the source's sync in the target, and the step that it was seen in."""

    store: CheckpointStore
    step: float = field(default=0.0, init=False)

    def note(self, begun: float) -> str:
        """Why the step that `begun` then, on the monotonic clock, goes on for so long; "" where nothing holds it up."""
        if time.monotonic() - begun < SLOW_SECONDS:
            return ""
        self.step = begun
        step, why = self.look() or (begun, "")
        return "; ".join(part for part in (self.store.failed, why if step == begun else "") if part)

    def _look(self) -> tuple[float, str]:
        step, store = self.step, self.store
        try:
            with session(self.endpoint, "target", patience_seconds=LOOK_SECONDS) as connection:
                return step, standstill(connection, store.meta, store.source, store.session)
        except UnshardError as error:
            return step, f"the target can't be asked what holds it up: {error.cause or error.message}"
