"""How far the source is ahead, for the status line: asked at most every few seconds on a connection of its own."""

from __future__ import annotations

import time
from dataclasses import dataclass, field

from unshard.errors import UnshardError
from unshard.mysql.connection import LOOK_SECONDS, Endpoint, session
from unshard.mysql.flavour import identify
from unshard.source.upstream import Upstream, read_upstream

REFRESH_SECONDS = 2.0


@dataclass(slots=True)
class UpstreamWatch:
    """The source's newest position as last seen. Used by one thread; while the source is away it knows nothing."""

    endpoint: Endpoint = field(repr=False)
    _seen: Upstream | None = None
    _due: float = 0.0

    def look(self) -> Upstream | None:
        """The source as it was at most REFRESH_SECONDS ago; None while it can't be asked."""
        if time.monotonic() >= self._due:
            self._seen = self._look()
            self._due = time.monotonic() + REFRESH_SECONDS
        return self._seen

    def _look(self) -> Upstream | None:
        try:
            with session(self.endpoint, "source", patience_seconds=LOOK_SECONDS) as connection:
                return read_upstream(connection, identify(connection))
        except UnshardError:
            return None  # the relay meets the same trouble, reports it and decides
