"""The election of the leader by a lease: one row in the store, with the leader's name, an epoch and the expiry.

Two leaders at a time do no harm. Each change of the store reads the row under lock in its own transaction, and gives up
if the epoch isn't that of the writer (`Store.writing`). So clocks decide only how soon another master takes over, never
what is written. The expiry is by the database's clock, which all masters share. A master considers itself the leader
only for as long as the lease lasts by its own monotonic clock, counted from before its request. If the database's clock
jumps ahead, a lease expires early; if it jumps back, it expires late. Neither does harm.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass

from sqlalchemy import Connection, insert, select, update

from unshard.errors import ClusterError
from unshard.master import tables
from unshard.master.state import MasterRow
from unshard.master.store import Store, clock

LEASE_SECONDS = 4.0
_ALIVE_LEASES = 3


@dataclass(frozen=True, slots=True)
class Leader:
    """The master that leads: its name and its address."""

    name: str
    addr: str


class Election:
    """One master's part in the election. `step` is called by one thread, at least every third of a lease."""

    def __init__(
        self,
        store: Store,
        name: str,
        addr: str,
        lease_seconds: float = LEASE_SECONDS,
        monotonic: Callable[[], float] = time.monotonic,
    ) -> None:
        self.name, self.addr, self.lease_seconds = name, addr, lease_seconds
        self._store, self._monotonic = store, monotonic
        self._epoch = 0
        self._until = 0.0
        self._seated = False
        """True if a step has succeeded: from then on a lease under its own name is not one of an earlier process."""
        self.leader: Leader | None = None
        """The leader by the last step; None where nobody leads."""
        self.terms = 0
        """How often this master has begun to lead; again in one epoch where its lease was over and nobody took it."""

    @property
    def epoch(self) -> int:
        """The epoch in which this master leads; 0 while it does not."""
        return self._epoch if self._monotonic() < self._until else 0

    def step(self) -> None:
        """Take, renew or look at the lease, and record this master as alive.

        Raises ClusterError CLUSTER-003, after which it leads no longer; CLUSTER-096 while another process takes part by
        its name.
        """
        asked = self._monotonic()
        led = self.epoch
        with self._store.transaction() as connection:
            now = clock(connection)
            evicted = self._be_seen(connection, now)
            row = connection.execute(select(tables.LEADER).where(tables.LEADER.c.id == 1).with_for_update()).first()
            if evicted:
                epoch = 0
                if row is not None and (row.name, row.addr) == (self.name, self.addr):
                    self._write(connection, row.epoch, 0.0)
            elif row is None:
                epoch = 1
                connection.execute(insert(tables.LEADER).values(id=1, **self._form(epoch, now + self.lease_seconds)))
            elif self._epoch == row.epoch:
                epoch = row.epoch
                self._write(connection, epoch, now + self.lease_seconds)
            elif row.until <= now or (not self._seated and (row.name, row.addr) == (self.name, self.addr)):
                epoch = row.epoch + 1  # with its own name and address it was the process before this one
                self._write(connection, epoch, now + self.lease_seconds)
            else:
                epoch = 0
            others = Leader(row.name, row.addr) if row is not None and row.until > now and not epoch else None
        self._seated = True
        self.terms += bool(epoch and epoch != led)
        self._epoch, self._until = epoch, asked + self.lease_seconds if epoch else 0.0
        twin = others is not None and others.name == self.name
        self.leader = Leader(self.name, self.addr) if epoch else None if twin else others
        if twin and not evicted:
            raise self._twin(self.addr)

    def leave(self) -> None:
        """Give the lease back and count as alive no more: this process ends. Raises ClusterError CLUSTER-003."""
        if self._seated:
            with self._store.transaction() as connection:
                rows = tables.MASTERS.c
                own = update(tables.MASTERS).where(rows.name == self.name, rows.addr == self.addr)
                connection.execute(own.values(seen=0.0))  # before the lease's row: all lock them in this order
                self._resign(connection)

    def _resign(self, connection: Connection) -> None:
        """Give the lease back, so that another master need not wait for its end."""
        epoch, self._epoch, self._until, self.leader = self._epoch, 0, 0.0, None
        changed = update(tables.LEADER).where(tables.LEADER.c.epoch == epoch, tables.LEADER.c.id == 1)
        connection.execute(changed.values(until=0.0))

    def evict(self) -> None:
        """Keep this master from leading until `cancel_evict`, also after a restart.

        Raises ClusterError CLUSTER-016 where nobody else could lead: workers would then let their sources go.
        """
        if not any(row.alive and not row.evicted and row.name != self.name for row in self.masters()):
            raise ClusterError("CLUSTER-016", cause="no other master is alive and may lead")
        with self._store.transaction() as connection:
            changed = update(tables.MASTERS).where(tables.MASTERS.c.name == self.name)
            connection.execute(changed.values(evicted=True))
            self._resign(connection)

    def cancel_evict(self) -> None:
        """Let all masters lead again. Any of them may be asked, for it may be that none leads."""
        with self._store.transaction() as connection:
            connection.execute(update(tables.MASTERS).values(evicted=False))

    def masters(self) -> tuple[MasterRow, ...]:
        """Return all masters on record, by name. Raises ClusterError CLUSTER-003."""
        with self._store.transaction() as connection:
            oldest = clock(connection) - _ALIVE_LEASES * self.lease_seconds
            rows = connection.execute(select(tables.MASTERS).order_by(tables.MASTERS.c.name))
            return tuple(MasterRow(row.name, row.addr, row.seen >= oldest, row.evicted) for row in rows)

    def _be_seen(self, connection: Connection, now: float) -> bool:
        """Record this master as alive; return if it is evicted. Raises ClusterError CLUSTER-096 for a used name."""
        own = tables.MASTERS.c.name == self.name
        row = connection.execute(select(tables.MASTERS).where(own).with_for_update()).first()  # `evict` comes after
        if row is not None and row.addr != self.addr and row.seen > now - self.lease_seconds:
            raise self._twin(row.addr)
        if row is None:
            form = {"name": self.name, "addr": self.addr, "seen": now, "evicted": False}
            connection.execute(insert(tables.MASTERS).values(form))
            return False
        connection.execute(update(tables.MASTERS).where(own).values(addr=self.addr, seen=now))
        return bool(row.evicted)

    def _twin(self, addr: str) -> ClusterError:
        return ClusterError("CLUSTER-096", values={"master": self.name, "addr": addr})

    def _form(self, epoch: int, until: float) -> dict[str, object]:
        return {"name": self.name, "addr": self.addr, "epoch": epoch, "until": until}

    def _write(self, connection: Connection, epoch: int, until: float) -> None:
        connection.execute(update(tables.LEADER).where(tables.LEADER.c.id == 1).values(self._form(epoch, until)))
