"""The driver's durable writes: claim the source, open a batch, close it, move the checkpoint.

Each is one transaction in the target and may be repeated after a lost connection.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import count
from typing import Any, TypeVar

from unshard.crash_point import reach
from unshard.ddl.online import Kept, Records
from unshard.errors import Where
from unshard.model.position import Location, Position
from unshard.model.table import TableName
from unshard.mysql.connection import ROWS_SECONDS, STATEMENT_SECONDS, Endpoint
from unshard.mysql.tidb import is_tidb
from unshard.retry import ATTEMPTS
from unshard.sync.batch.key_report import KeyReport
from unshard.sync.batch.plan import writer_name
from unshard.sync.batch.row_counts import Account
from unshard.target import receipts
from unshard.target.block_allow_lists import Form, save_lists
from unshard.target.changed_keys import add_changed_keys
from unshard.target.checkpoint import Checkpoint, ExitPoint, TableCheckpoint, load_checkpoint, save_checkpoint
from unshard.target.clamped_values import note_clamped
from unshard.target.ddl_jobs import TidbDdl
from unshard.target.fence import fenced, wait_for_earlier_ddl
from unshard.target.meta import MetaTables
from unshard.target.online_ddl import load_records, save_records
from unshard.target.operators import Operator, load_operators, settle
from unshard.target.prepared_xa import PreparedXa, drop, keep, load_prepared
from unshard.target.recorded import Stopped, forget_stopped, save_stopped
from unshard.target.row_counts import add_left_out, add_to_ledger, forget_missing
from unshard.target.transactions import on_target
from unshard.target.upstream import load_upstream, save_upstream
from unshard.target.writer import drop_writers, writer
from unshard.transform.latest_time import ClampedValue

T = TypeVar("T")
Changed = Mapping[TableName, TableCheckpoint]
Numbers = Sequence[int] | None
Also = Callable[[Any], None]
"""Called with the cursor of a transaction, at each attempt, right before the transaction commits."""


def nothing(_: Any) -> None:
    """Write nothing: an `Also` for a checkpoint without further records."""


@dataclass(slots=True)
class CheckpointStore:
    """The access to one source's claim, open batch and checkpoint in the target. Used by one thread.

    `claim` sets `epoch`, `batch_id` and `moves`. `exact`: whether the checkpoint is written with exactly-once delivery.
    `exit_point` and `held` (where the first unresolved sharding DDL began) are written with every checkpoint. `owed`
    are the row counts that the checkpoint's next move adds to the ledger, and `used` the operators that it marks as
    applied, each with a note. `chunks`: how many chunks of the open batch are applied, once that is known. `order` is
    the master's order by which the source is claimed; None where a human starts the process. `attempts`: how often an
    operation is tried; once the target has been given up, only one more is, to record the stop, without a second wait.

    `keys` are the changed keys that the checkpoint's next move stores for continuous validation, `clamped` the clamped
    values that it records, `lists` the block-allow lists that it records where they are others. Any thread may set
    `validates`, which turns the collection of keys on.

    Any thread may read `waits` (what the source waits for, in words), `failed` (what has failed and is tried again) and
    `session` (the number of the connection in the target, 0 for none).
    """

    endpoint: Endpoint
    meta: MetaTables
    source: str
    epoch: int = 0
    batch_id: int = 0
    moves: int = 0
    exact: bool = True
    exit_point: ExitPoint | None = None
    held: Location | None = None
    owed: Account = field(default_factory=Account)
    keys: tuple[KeyReport, ...] = ()
    clamped: tuple[ClampedValue, ...] = ()
    lists: tuple[Form, ...] = ()
    validates: bool = False
    used: dict[int, str] = field(default_factory=dict)
    chunks: int | None = None
    attempts: int = ATTEMPTS
    waits: str = ""
    failed: str = ""
    session: int = 0
    order: receipts.Order | None = None
    _connections: dict[int, Any] = field(init=False, default_factory=dict, repr=False)
    _patience_seconds: int = ROWS_SECONDS

    def claim(self) -> tuple[Checkpoint | None, receipts.OpenBatch | None]:
        """Claim the source. Return its checkpoint and the batch that was left open, if any."""
        self.attempts = ATTEMPTS
        self.on_target(self.meta.create)
        reach("sync-claim-before")
        claimed = self.on_target(lambda c: receipts.claim(c, self.meta, self.source, self.order))
        reach("sync-claim-after")
        self.epoch, self.batch_id, self.moves, self.chunks = claimed.epoch, claimed.batch_id, claimed.moves, None
        self.on_target(self._wait_for_predecessors)
        kept = claimed.open_batch.plan.get("skipped", []) if claimed.open_batch else []
        self.owed = Account(skipped={(name, rule): events for name, rule, events in kept})
        self.used, self.keys, self.clamped = {}, (), ()
        return self.checkpoint(), claimed.open_batch

    def checkpoint(self) -> Checkpoint | None:
        """Return the source's present checkpoint; None if it has none."""
        return self.on_target(lambda c: load_checkpoint(c, self.meta, self.source))

    def upstream(self) -> str | None:
        """Return the server that the recorded binlog names are of, if it is on record."""
        return self.on_target(lambda c: load_upstream(c, self.meta, self.source))

    def prepared(self) -> dict[str, PreparedXa]:
        """Return the source's prepared XA transactions, by xid."""
        return self.on_target(lambda c: load_prepared(c, self.meta, self.source))

    def online_ddl(self) -> dict[TableName, tuple[Kept, ...]]:
        """Return, by ghost table, the statements that wait for its RENAME."""
        return self.on_target(lambda c: load_records(c, self.meta, self.source))

    def operators(self) -> tuple[Operator, ...]:
        """Return the source's pending operators, in the order of the log."""
        return self.on_target(lambda c: load_operators(c, self.meta, self.source))

    def operator_in(self, begin: Position, end: Position) -> Operator | None:
        """Return the pending operator at a position from `begin` to before `end`; None if there is none."""
        return next((one for one in self.operators() if begin <= one.position < end), None)

    def applied(self, partitions: int) -> list[receipts.Applied]:
        """Return how far each partition of the open batch is applied."""
        own, has = (self.meta, self.source), (self.epoch, self.batch_id)
        return self.on_target(lambda c: [receipts.applied(c, *own, part, *has) for part in range(partitions)])

    def open(
        self, begin: Location, end: Location, plan: dict[str, Any], partitions: int, operators: Numbers = None
    ) -> bool:
        """Write the next batch's plan. Nothing of it may be applied before this returns True.

        False where other operators are pending than `operators`, if these are given: nothing is written then. The row
        events in `owed` are stored with it: a process that finds the batch open does not read again what lies before
        it.
        """
        whole = self._with_owed({**plan, "end_gtid": end.gtid})
        batch = receipts.OpenBatch(self.batch_id + 1, begin.position, end.position, whole)
        reach("sync-open-before")
        own = self.meta, self.source, self.epoch
        if not self.on_target(lambda c: receipts.open_batch(c, *own, batch, partitions, operators, self.moves)):
            return False
        reach("sync-open-after")
        self.batch_id, self.chunks = batch.batch_id, None
        return True

    def close(
        self,
        end: Location,
        changed: Changed,
        account: Account,
        xid: str = "",
        online: Records | None = None,
        also: Also = nothing,
    ) -> None:
        """Move the checkpoint to `end`, add `account` and `owed` to the ledger, close the open batch; all or nothing.

        `xid` is the prepared transaction that the batch has committed, `online` are changes to the records of ghost
        tables, `also` writes more in the same transaction, by key. If it is tried again after it has succeeded, it
        changes nothing.
        """

        def attempt(connection: Any) -> None:
            with connection.cursor() as cursor:
                cursor.execute("BEGIN")
                if self._is_closed(cursor):
                    cursor.execute("ROLLBACK")
                    return
                receipts.mark_done(cursor, self.meta, self.source, self.epoch, self.batch_id, self.chunks)
                self._save(cursor, end, changed)
                save_records(cursor, self.meta, self.source, online or {})
                self._add_to_ledger(cursor, account + self.owed)
                self._settle(cursor)
                if xid:
                    drop(cursor, self.meta, self.source, xid)
                also(cursor)
                cursor.execute("COMMIT")

        reach("sync-close-before")
        self.on_target(attempt)
        self.owed, self.used, self.keys, self.clamped, self.lists = Account(), {}, (), (), ()
        reach("sync-close-after")

    def note(self, plan: dict[str, Any], connection: Any = None, operators: Numbers = None) -> bool:
        """Store the open batch's plan anew, with what is done of it; within `change` on its `connection`.

        `operators` and the result are those of `open`.
        """
        own = self.meta, self.source, self.epoch, self.batch_id
        whole = self._with_owed(plan)

        def write(connection: Any) -> bool:
            return receipts.note_plan(connection, *own, whole, operators)

        return self.on_target(write) if connection is None else write(connection)

    def move(
        self,
        end: Location,
        changed: Changed,
        prepared: PreparedXa | None = None,
        xid: str = "",
        online: Records | None = None,
        also: Also = nothing,
    ) -> None:
        """Move the checkpoint without a batch, over a range that changes nothing in the target.

        The range may end with an XA transaction that is `prepared`, with the end of the one of that `xid`, or with a
        statement on a ghost table, whose changes to the records are `online`. `also` writes more in the same
        transaction, by key.
        """
        attempts = count()

        def attempt(connection: Any) -> None:
            with connection.cursor() as cursor:
                cursor.execute("BEGIN")
                receipts.hold(cursor, self.meta, self.source, self.epoch, self.batch_id, self.moves)
                if not next(attempts) or not self._stands_at(connection, end):
                    self._add_to_ledger(cursor, self.owed)
                self._save(cursor, end, changed)
                save_records(cursor, self.meta, self.source, online or {})
                if prepared is not None:
                    keep(cursor, self.meta, self.source, prepared)
                self._settle(cursor)
                if xid:
                    drop(cursor, self.meta, self.source, xid)
                also(cursor)
                cursor.execute("COMMIT")

        reach("sync-move-before")
        self.on_target(attempt)
        self.moves += 1
        self.owed, self.used, self.keys, self.clamped, self.lists = Account(), {}, (), (), ()
        reach("sync-move-after")

    def cross(self, uuid: str, checkpoint: Checkpoint, prepared: Iterable[PreparedXa], also: Also = nothing) -> None:
        """Replace all recorded binlog names by those of another server; all or nothing.

        `checkpoint` has the tables whose row changes, `prepared` all prepared transactions. `also` writes more, by key.
        """

        def write(cursor: Any) -> None:
            self._save(cursor, checkpoint.location, checkpoint.tables)
            for one in prepared:
                keep(cursor, self.meta, self.source, one)
            save_upstream(cursor, self.meta, self.source, uuid)
            also(cursor)

        self.exit_point = checkpoint.exit_point
        reach("sync-cross-before")
        self.in_one(write)
        reach("sync-cross-after")

    def stopped(self, stopped: Stopped) -> None:
        """Record where and why the source stops. Raises SyncError SYNC-001 where another process owns it."""
        self.in_one(lambda cursor: save_stopped(cursor, self.meta, self.source, stopped))

    def goes_on(self) -> None:
        """Delete the record of where the source stopped."""
        self.in_one(lambda cursor: forget_stopped(cursor, self.meta, self.source))

    def owe(self, account: Account) -> None:
        """Add `account` to what the next move of the checkpoint adds to the ledger."""
        self.owed += account

    def on_target(self, operation: Callable[[Any], T], patience_seconds: int = ROWS_SECONDS) -> T:
        """Run `operation(connection)` under the retry policy; each of its statements may take `patience_seconds`."""
        self._patience_seconds = patience_seconds
        try:
            where, schema = Where(source=self.source), self.meta.schema
            return on_target(self, operation, where, self.attempts, self._tell_failed, schema=schema)
        finally:
            self.failed = ""

    def change(self, operation: Callable[[Any], T]) -> T:
        """Run `operation(connection)`, which changes structures in the target, as `on_target` does.

        A process that has lost the source can't do so, however late it sends its statement (`target.fence`).
        """

        def attempt(connection: Any) -> T:
            with fenced(connection, self.meta, self.source, self.epoch, self._tell):
                return operation(connection)

        return self.on_target(attempt, STATEMENT_SECONDS)

    def jobs(self, connection: Any) -> TidbDdl | None:
        """Return the DDL jobs of a TiDB target; None for another product."""
        if not is_tidb(connection):
            return None
        return TidbDdl(connection, self.meta, self.source, self.epoch, self._tell)

    def get(self) -> Any:
        """Return the connection for statements as long as those of the current operation; open it if there is none."""
        patience = self._patience_seconds
        if patience not in self._connections:
            self._connections[patience] = writer(self.endpoint, patience)
        self.session = self._connections[patience].thread_id()
        return self._connections[patience]

    def drop(self) -> None:
        """Close all connections. The next operation opens another."""
        for patience in list(self._connections):
            self._close(patience)
        self.session = 0

    def rest(self) -> None:
        """Close the connection that changes structures: nothing comes for now."""
        self._close(STATEMENT_SECONDS)

    def _close(self, patience: int) -> None:
        connection = self._connections.pop(patience, None)
        if connection is not None:
            connection.close()

    @property
    def rows_writer(self) -> str:
        """The owner of the connections by which this process writes rows of the source (`target.writer`)."""
        return writer_name(self.meta, self.source, self.epoch)

    def leave(self) -> None:
        """Close all connections by which this process writes for the source."""
        self.drop()
        drop_writers(self.rows_writer)

    def in_one(self, write: Callable[[Any], T]) -> T:
        """Run `write` in one transaction of the source's owner. Raises SyncError SYNC-001 where another owns it."""

        def attempt(connection: Any) -> T:
            with connection.cursor() as cursor:
                cursor.execute("BEGIN")
                receipts.hold(cursor, self.meta, self.source, self.epoch, moves=self.moves)
                answer = write(cursor)
                cursor.execute("COMMIT")
                return answer

        answer = self.on_target(attempt)
        self.moves += 1
        return answer

    def _wait_for_predecessors(self, connection: Any) -> None:
        """Wait until no earlier process can change a structure any more."""
        wait_for_earlier_ddl(connection, self.meta, self.source, self.epoch, self._tell)

    def _tell(self, why: str) -> None:
        self.waits = why

    def _tell_failed(self, words: str) -> None:
        self.failed = words

    def _settle(self, cursor: Any) -> None:
        for number, note in self.used.items():
            settle(cursor, self.meta, self.source, [number], "applied", self.epoch, self.batch_id, note)

    def _save(self, cursor: Any, end: Location, changed: Changed) -> None:
        save_checkpoint(cursor, self.meta, self.source, end, changed, self.exit_point, exact=self.exact, held=self.held)
        if self.keys:
            parts = [(report.described, report.keys, report.data) for report in self.keys]
            add_changed_keys(cursor, self.meta, self.source, end, parts)
        if self.lists:
            save_lists(cursor, self.meta, self.source, self.lists)
        if self.clamped:
            note_clamped(cursor, self.meta, self.source, self.clamped, str(end.position))

    def _is_closed(self, cursor: Any) -> bool:
        """Return whether an attempt whose answer was lost has closed this batch, after waiting for its COMMIT."""
        cursor.execute(
            f"SELECT state FROM {self.meta.batch} WHERE source = %s AND epoch = %s AND batch_id = %s FOR UPDATE",
            (self.source, self.epoch, self.batch_id),
        )
        return bool(cursor.fetchone() == ("done",))

    def _with_owed(self, plan: dict[str, Any]) -> dict[str, Any]:
        skipped = [[*name_and_rule, events] for name_and_rule, events in self.owed.skipped.items()]
        return {**plan, "skipped": skipped} if skipped else plan

    def _stands_at(self, connection: Any, end: Location) -> bool:
        """Return whether an attempt whose answer was lost has moved the checkpoint, and with it added what was owed."""
        found = load_checkpoint(connection, self.meta, self.source, tables_too=False)
        return found is not None and found.location == end

    def _add_to_ledger(self, cursor: Any, account: Account) -> None:
        tables = account.tables
        add_to_ledger(cursor, self.meta, self.source, {target: entry.counts for target, entry in tables.items()})
        filtered = {(target, rule): n for target, entry in tables.items() for rule, n in entry.rules.items()}
        add_left_out(cursor, self.meta, self.source, "changes", filtered)
        add_left_out(cursor, self.meta, self.source, "events", account.skipped)
        if any(entry.missing for entry in tables.values()):
            forget_missing(cursor, self.meta, self.source)
