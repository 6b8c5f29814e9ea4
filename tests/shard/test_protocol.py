"""Any interleaving of DDL, changes, restarts, joins and leaves over three sources of three tables ends with the target
equal to the merged sources: each row written once, to its own structure; each DDL run once; nothing stuck."""

from __future__ import annotations

import os

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, rule
from sharded_world import SOURCES, TABLES, World, number_of

from unshard.model.table import TableName

MOST_DDL = 4
LONG = int(os.environ.get("UNSHARD_PROTOCOL_EXAMPLES", "0"))
sources, tables = st.sampled_from(SOURCES), st.sampled_from(TABLES)


class Protocol(RuleBasedStateMachine):
    strict = True

    @initialize(counts=st.tuples(*[st.integers(0, 3)] * 3))
    def begin(self, counts: tuple[int, ...]) -> None:
        self.world = World(strict=self.strict)
        for source, count in zip(SOURCES, counts, strict=True):
            for table in TABLES[:count]:
                self.world.upstreams[source].create(table, 0)
            upstream = self.world.upstreams[source]
            self.world.subtasks[source].at = len(upstream.log)

    @rule(source=sources, table=tables)
    def insert(self, source: str, table: TableName) -> None:
        if table in self.world.upstreams[source].live:
            self.world.upstreams[source].insert(table)

    @rule(source=sources, table=tables)
    def alter(self, source: str, table: TableName) -> None:
        upstream = self.world.upstreams[source]
        if upstream.live.get(table, MOST_DDL) < MOST_DDL and self.world.subtasks[source].announced:
            upstream.alter(table)

    @rule(source=sources, table=tables)
    def create(self, source: str, table: TableName) -> None:
        """With the newest structure of its source; the first one of a source with that of the target, read at once."""
        world, upstream = self.world, self.world.upstreams[source]
        subtask = world.subtasks[source]
        if table in upstream.live or not world.follows(source):
            return
        if upstream.live:
            upstream.create(table, upstream.newest)
        elif subtask.at == len(upstream.log) and source not in world.locks.members and not world.locks.busy:
            upstream.create(table, world.target.version)
            world.step(source, "read")

    @rule(source=sources, table=tables)
    def drop(self, source: str, table: TableName) -> None:
        upstream = self.world.upstreams[source]
        if table in upstream.live and self.world.subtasks[source].announced:
            upstream.drop(table)

    @rule(source=sources, old=tables, new=tables)
    def rename(self, source: str, old: TableName, new: TableName) -> None:
        upstream = self.world.upstreams[source]
        follows = self.world.subtasks[source].announced
        if follows and new not in upstream.live and upstream.live.get(old) == upstream.newest:
            upstream.rename(old, new)

    @rule(source=sources, choice=st.integers(0, 3), part=st.integers(1, 6))
    def step(self, source: str, choice: int, part: int) -> None:
        found = self.world.choices(source)
        if found and self.world.follows(source):
            self.world.step(source, found[choice % len(found)], part)

    @rule(source=sources)
    def catch_up(self, source: str) -> None:
        """It does what it should until it has to wait."""
        while self.world.follows(source) and (found := self.world.choices(source)):
            self.world.step(source, found[0])

    @rule(source=sources)
    def start(self, source: str) -> None:
        """For the first time, or again."""
        self.world.announce(source)

    @invariant()
    def at_most_the_last_lock_is_not_executed(self) -> None:
        if hasattr(self, "world"):
            assert all(lock.executed for lock in self.world.locks.locks[:-1])

    def teardown(self) -> None:
        if not hasattr(self, "world"):
            return
        world = self.world
        for source in SOURCES:
            if not world.follows(source):
                world.announce(source)
        newest = max(upstream.newest for upstream in world.upstreams.values())
        for upstream in world.upstreams.values():
            for table in tuple(upstream.live):
                while upstream.live[table] < newest:
                    upstream.alter(table)
                upstream.insert(table)
        for steps, _ in enumerate(world.settle()):
            assert steps < 10_000, "it never ends"
        self.check_end()

    def check_end(self) -> None:
        self.world.check_end()


class ProtocolWithUnlocks(Protocol):
    """A human resolves locks too early, or takes sources out of the task for a while: rows may meet a structure that is
    not theirs, all else still holds."""

    strict = False

    @rule(source=sources, remove=st.booleans())
    def unlock(self, source: str, remove: bool) -> None:
        locks = self.world.locks
        if locks.open is None:
            return
        if remove and not locks.busy:
            self.world.target.run(number_of(locks.open.ddls))  # by hand: it is on whoever gives the lock up
            self.world.form = locks.remove("ann").to_dict()
        elif source in locks.open.reports and (not locks.busy or source == locks.open.owner):
            self.world.form = locks.unlock(source, "ann").to_dict()

    @rule(source=sources)
    def take_out(self, source: str) -> None:
        if self.world.follows(source):
            self.world.take_out(source)


_settings = settings(
    max_examples=LONG or 60,
    stateful_step_count=60,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.filter_too_much],
)
TestProtocol = Protocol.TestCase
TestProtocol.settings = _settings
TestProtocolWithUnlocks = ProtocolWithUnlocks.TestCase
TestProtocolWithUnlocks.settings = _settings
