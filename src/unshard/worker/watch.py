"""How far the source is ahead, for the status line: asked at most every few seconds on a connection of its own."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from threading import Lock, Thread

from unshard.errors import UnshardError
from unshard.mysql.connection import LOOK_SECONDS, Endpoint, session
from unshard.mysql.flavour import identify
from unshard.source.upstream import Upstream, read_upstream

REFRESH_SECONDS = 2.0
WAIT_SECONDS = 0.2
"""How long a look waits: a source that writes a large transaction to its binlog answers nobody meanwhile."""


@dataclass(slots=True)
class UpstreamWatch:
    """The source's newest position as last seen. While the source is away it knows nothing. Any thread may look."""

    endpoint: Endpoint = field(repr=False)
    _seen: Upstream | None = None
    _due: float = 0.0
    _asking: Thread | None = None
    _looking: Lock = field(default_factory=Lock)

    def look(self) -> Upstream | None:
        """The source as it was at its last answer, REFRESH_SECONDS ago where it answers at once; None without one.

        Takes WAIT_SECONDS at most: a source that is slow to answer doesn't hold up what is shown of others.
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

    def _look(self) -> Upstream | None:
        try:
            with session(self.endpoint, "source", patience_seconds=LOOK_SECONDS) as connection:
                return read_upstream(connection, identify(connection))
        except UnshardError:
            return None  # the relay meets the same trouble, reports it and decides
