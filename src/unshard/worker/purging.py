"""Deletes a source's relay files, except those that its subtasks, running or not, still need."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from threading import Lock, Thread

from unshard.config.subtask import SubtaskConfig
from unshard.errors import RelayError, UnshardError, Where
from unshard.log import logger
from unshard.metrics.events import EVENTS
from unshard.mysql.connection import session
from unshard.relay.purge import Purged, PurgeLimits, PurgeReader, purge
from unshard.target.upstream import load_upstream
from unshard.worker.build import beginning_of
from unshard.worker.shared_relay import SharedRelay

FOLLOWS = ("incremental", "all")
PURGED_FILES, PURGED_BYTES = "unshard_relay_purged_files_total", "unshard_relay_purged_bytes_total"


@dataclass(frozen=True, slots=True)
class Followers:
    """The subtasks that read a source's relay log.

    `at_work` are those that its worker runs; `progress` those that are stopped until they are started again.
    """

    at_work: Sequence[SubtaskConfig] = ()
    progress: Sequence[SubtaskConfig] = ()


@dataclass(slots=True)
class Purger:
    """The purge of a source's relay log, by hand or by the clock. Any thread may call `purge`, one thread `tick`.

    One purge runs at a time. `followers` returns the subtasks. It is called when no further reader can join any more; a
    new reader joins when the purge is over, and finds the remaining files.
    """

    _looked: float = field(default_factory=time.monotonic)
    _one: Lock = field(default_factory=Lock)

    def purge(self, relay: SharedRelay, followers: Callable[[], Followers], limits: PurgeLimits) -> Purged:
        """Delete the files beyond the limits that no subtask needs, not even for blocked tables or copies under way.

        Raises RelayError: 034 while another purge is under way, 033 where it can't be told what a subtask needs;
        TargetError and SourceError where that can't be asked.
        """
        name = relay.source.source_id
        if not self._one.acquire(blocking=False):
            raise RelayError("RELAY-034", Where(source=name))
        try:
            with relay.purging:
                done = purge(relay.folder, needs(followers()), limits, now=time.time())
        finally:
            self._one.release()
        if done.gone or done.kept:
            logger("relay", source=name).info("relay log purged", told=done.told())
        EVENTS.count(PURGED_FILES, len(done.gone), source_id=name)
        EVENTS.count(PURGED_BYTES, sum(file.size for file in done.gone), source_id=name)
        return done

    def tick(self, relay: SharedRelay, followers: Callable[[], Followers]) -> None:
        """Look each `purge.interval` whether age or space ask for a purge; in a thread of its own."""
        wished = relay.source.purge
        if not wished.interval or not (wished.expires or wished.remain_space):
            return
        if time.monotonic() < self._looked + wished.interval:
            return
        self._looked = time.monotonic()
        limits = PurgeLimits(expires_hours=wished.expires, remain_gb=wished.remain_space)
        Thread(target=self._by_clock, args=(relay, followers, limits), name="purge", daemon=True).start()

    def _by_clock(self, relay: SharedRelay, followers: Callable[[], Followers], limits: PurgeLimits) -> None:
        try:
            self.purge(relay, followers, limits)
        except UnshardError as error:
            logger("relay", source=relay.source.source_id).warning("nothing is purged", error=str(error))


def needs(followers: Followers) -> Mapping[str, list[PurgeReader]]:
    """Return the positions from which each subtask may read again, by the uuid of the server that they are of.

    One that stands and has come to no place yet needs nothing: it begins anew. Reads target, source and dump folder.
    Raises RelayError 033 for another one.
    """
    found: dict[str, list[PurgeReader]] = defaultdict(list)
    for configs, stand in ((followers.at_work, False), (followers.progress, True)):
        for config in (one for one in configs if one.mode in FOLLOWS):
            upstream, reader = _reader(config)
            if reader is not None:
                found[upstream].append(reader)
            elif not stand:
                raise RelayError("RELAY-033", Where(source=config.source_id), values={"task": config.name})
    return found


def _reader(config: SubtaskConfig) -> tuple[str, PurgeReader | None]:
    """Return the server that the subtask follows, and the position from which it needs the log.

    None before it has one.
    """
    beginning = beginning_of(config)
    with session(beginning.target, "target") as connection:
        beginning.meta.create(connection)
        upstream = load_upstream(connection, beginning.meta, config.source_id)
    start = beginning.relay_start() if upstream is not None else None
    if upstream is None or start is None or not start.position.file:
        return "", None
    return upstream, PurgeReader(config.name, start.position)
