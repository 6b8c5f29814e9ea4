"""The status of a sync unit: the figures of the status line and `query-status`."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from threading import Lock

from unshard.api.status import UnresolvedGroup
from unshard.metrics.registry import METRICS
from unshard.metrics.sample import Distribution, Histogram
from unshard.model.position import Location
from unshard.sync.batch.row_counts import Account, RowCounts
from unshard.sync.lag import Lag, Sighting

WINDOW_SECONDS = 5.0
LONG_WINDOW_SECONDS = 60.0
"""For the pace that the remaining time is told by: longer than a large batch."""


@dataclass(frozen=True, slots=True)
class Unsynced:
    """The source tables that have not met a sharding DDL which other tables have met.

    `since`: when the first table met it, unix seconds; 0: unknown. `overdue`: it waits for longer than the task's
    `shard-wait-alert`.
    """

    tables: tuple[str, ...]
    since: float = 0.0
    overdue: bool = False


@dataclass(frozen=True, slots=True)
class WaitingDdl:
    """A sharding DDL that waits: the tables that have not met it, and its waiting time by the source's clock."""

    unsynced: tuple[str, ...]
    seconds: float
    overdue: bool = False


@dataclass(frozen=True, slots=True)
class FailOver:
    """A failover of the source from the server `before` to the server `now`.

    `place` (`file:offset`) is where the log continues in the new server's binlog.
    """

    before: str
    now: str
    place: str


@dataclass(frozen=True, slots=True)
class SyncReading:
    """The figures of a sync unit at one moment.

    `lag_seconds` is None while it is unknown (`Lag`); `rows` counts applied changes. `table_lag` and `waiting` are by
    target table. `bytes` of the binlog and `transactions` count from the start of the unit; rates are of the last
    seconds, `pace` (bytes a second) of the last minute. `tables` has the row counts of each target table, as in the
    target's ledger, `skipped` by source table and rule the row events that were skipped. `safe_mode` is the reason why
    safe mode is on; empty: it is off. `groups`: the sharding DDL that waits. `failovers`: the failovers that the unit
    has followed.
    """

    location: Location | None
    rows: int
    rows_per_second: float
    batches: int
    lag_seconds: float | None
    missing: int
    doing: str
    step_seconds: Mapping[str, float]
    tables: Mapping[str, RowCounts]
    safe_mode: str = ""
    skipped: Mapping[tuple[str, str], int] = field(default_factory=dict)
    transactions: int = 0
    transactions_per_second: float = 0.0
    bytes: int = 0
    bytes_per_second: float = 0.0
    pace: float = 0.0
    table_lag: Mapping[str, float | None] = field(default_factory=dict)
    batch_seconds: Distribution | None = None
    checkpoint_intervals: Distribution | None = None
    waiting: Mapping[str, WaitingDdl] = field(default_factory=dict)
    groups: tuple[UnresolvedGroup, ...] = ()
    failovers: tuple[FailOver, ...] = ()


@dataclass(frozen=True, slots=True)
class _Recent:
    """The work that was finished at one time of the monotonic clock."""

    at: float
    rows: int
    transactions: int
    bytes: int


def _histogram(name: str) -> Histogram:
    return Histogram(METRICS[name].buckets)


@dataclass(slots=True)
class Meter:
    """The figures of a sync unit while it works. Written by the unit's thread, read by any.

    `step_since`: when the current step began, on the monotonic clock.
    """

    location: Location | None = None
    doing: str = "starting"
    step_since: float = 0.0
    rows: int = 0
    batches: int = 0
    missing: int = 0
    behind: bool = True
    safe_mode: str = ""
    groups: tuple[UnresolvedGroup, ...] = ()
    failovers: tuple[FailOver, ...] = ()
    tables: dict[str, RowCounts] = field(default_factory=dict)
    skipped: Counter[tuple[str, str]] = field(default_factory=Counter)
    steps: dict[str, float] = field(default_factory=dict)
    transactions: int = 0
    bytes: int = 0
    batch_seconds: Histogram = field(default_factory=lambda: _histogram("unshard_sync_batch_seconds"))
    intervals: Histogram = field(default_factory=lambda: _histogram("dm_syncer_flush_checkpoints_time_interval"))
    _held: dict[str, float] = field(default_factory=dict)
    _waiting: dict[str, tuple[float, Unsynced]] = field(default_factory=dict)
    _saved: float | None = None
    _lag: Lag = field(default_factory=Lag)
    _recent: deque[_Recent] = field(default_factory=deque)
    _lock: Lock = field(default_factory=Lock)

    def passed(self, account: Account, now: float = 0.0, *, transactions: int = 0, size: int = 0) -> None:
        """Count a part of the log in which nothing is for the target. Arguments are as for `applied`."""
        with self._lock:
            self.skipped.update(account.skipped)
            self._done(_Recent(now, 0, transactions, size))

    def spent(self, seconds: Iterable[Mapping[str, float]]) -> None:
        """Add the seconds that the tasks of a batch took, by step."""
        for by_step in seconds:
            for step, more in by_step.items():
                self.steps[step] = self.steps.get(step, 0.0) + more

    def saved(self, now: float) -> None:
        """Note that the checkpoint was moved."""
        if self._saved is not None:
            self.intervals.observe(now - self._saved)
        self._saved = now

    def waits(self, waiting: Mapping[str, Unsynced], now: float) -> None:
        """Set the sharding DDLs that wait, by target table; all there are. Such a table stays as it was before the DDL.

        One whose time is not known, for it is run and what was held is read again, keeps the time that it had.
        """
        with self._lock:
            for table, found in waiting.items():
                first, known = self._waiting.get(table, (now, found))
                self._waiting[table] = first, replace(found, since=found.since or known.since)
                self._held[table] = self._waiting[table][1].since or self._held.get(table, self._lag.as_of)
            for table in self._waiting.keys() - waiting.keys():
                del self._waiting[table], self._held[table]

    def applied(
        self, account: Account, commit_time: float, now: float, *, transactions: int = 0, size: int = 0
    ) -> None:
        """Count a closed batch: its rows, and the upstream's commit time of its end (unix seconds).

        `size` is its bytes of binlog; `now` is of the monotonic clock.
        """
        total = account.tables
        with self._lock:
            self.skipped.update(account.skipped)
            for table, entry in total.items():
                self.tables[table] = self.tables.get(table, RowCounts()) + entry
            rows = sum(entry.decoded for entry in total.values())
            self.rows += rows
            self.batches += 1
            self.missing += sum(entry.missing for entry in total.values())
            self._lag.committed(commit_time)
            self._done(_Recent(now, rows, transactions, size))

    def read(self, now: float, sighting: Sighting | None) -> SyncReading:
        """Return the figures at `now` (monotonic), given the source's last answer; None: it can't be asked."""
        with self._lock:
            self._lag.sighted(sighting)
            while self._recent and self._recent[0].at < now - LONG_WINDOW_SECONDS:
                self._recent.popleft()
            recent = [one for one in self._recent if one.at >= now - WINDOW_SECONDS]
            lag = None
            if self.location is not None:
                lag = self._lag.read(self.location.position, now, behind=self.behind)
            return SyncReading(
                location=self.location,
                rows=self.rows,
                rows_per_second=sum(one.rows for one in recent) / WINDOW_SECONDS,
                batches=self.batches,
                lag_seconds=lag,
                missing=self.missing,
                doing=self.doing,
                step_seconds=dict(self.steps),
                tables=dict(self.tables),
                safe_mode=self.safe_mode,
                skipped=dict(self.skipped),
                transactions=self.transactions,
                transactions_per_second=sum(one.transactions for one in recent) / WINDOW_SECONDS,
                bytes=self.bytes,
                bytes_per_second=sum(one.bytes for one in recent) / WINDOW_SECONDS,
                pace=sum(one.bytes for one in self._recent) / LONG_WINDOW_SECONDS,
                table_lag=self._table_lag(lag, now),
                batch_seconds=self.batch_seconds.read(),
                checkpoint_intervals=self.intervals.read(),
                waiting=self._waited(now),
                groups=self.groups,
                failovers=self.failovers,
            )

    def _done(self, recent: _Recent) -> None:
        self.transactions += recent.transactions
        self.bytes += recent.bytes
        self._recent.append(recent)

    def _waited(self, now: float) -> dict[str, WaitingDdl]:
        """Return the waits by the source's clock where it is known: a restart does not reset it."""
        clock = self._lag.clock(now)
        found = {}
        for table, (first, one) in self._waiting.items():
            seconds = max(0.0, clock - one.since) if clock is not None and one.since else now - first
            found[table] = WaitingDdl(one.tables, seconds, one.overdue)
        return found

    def _table_lag(self, lag: float | None, now: float) -> dict[str, float | None]:
        """Return the lag of each table.

        A blocked table lags by the source's clock; all others are as far as the source.
        """
        lags: dict[str, float | None] = dict.fromkeys(self.tables, lag)
        clock = self._lag.clock(now)
        for table, commit_time in self._held.items():
            lags[table] = max(0.0, clock - commit_time) if clock is not None and commit_time else None
        return lags
