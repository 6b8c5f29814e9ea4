"""A model of three sources that merge their tables into one target, driven step by step by the machines of `shard`.

A source's log is a list; its place in it, its group and the locks are all that survives. Each step is one transaction
of the target, computed from what was durable and written back as JSON, so a death between two steps loses nothing that
a step could miss, and one inside of a step is a step that was not made.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field

from unshard.model.position import Location, Position
from unshard.model.table import TableName
from unshard.shard.group import Resync, ShardingGroup, TableState
from unshard.shard.lock_keeper import LockKeeper, Outcome
from unshard.shard.sequence import DdlItem

TARGET = TableName("db", "t")
SOURCES = ("s1", "s2", "s3")
TABLES = tuple(TableName("up", name) for name in ("t1", "t2", "t3"))
WIDTH = 10


def place(index: int) -> Location:
    return Location(Position("bin.000001", WIDTH * (index + 1)))


def ddl(number: int) -> tuple[str, ...]:
    return (f"ALTER TABLE `db`.`t` ADD c{number} INT",)


def number_of(ddls: tuple[str, ...]) -> int:
    return int(ddls[0].split()[-2][1:])


@dataclass(frozen=True)
class Event:
    """`version`: the structure that a row was written with, a DDL leads to, or a new table has."""

    kind: str
    table: TableName
    version: int = 0
    line: int = 0
    other: TableName | None = None


@dataclass
class Target:
    """`strict`: a row is only ever written to the structure that it was written with upstream."""

    version: int = 0
    executed: list[int] = field(default_factory=list)
    rows: list[tuple[str, int]] = field(default_factory=list)
    strict: bool = True

    def write(self, source: str, index: int, event: Event) -> None:
        assert not self.strict or event.version == self.version, f"{source} {event} to structure {self.version}"
        self.rows.append((source, index))

    def run(self, number: int) -> None:
        assert number not in self.executed
        assert not self.strict or number == self.version + 1
        self.executed.append(number)
        self.version = number


@dataclass
class Upstream:
    """What the users of one source see: live tables with their structure, and the log."""

    log: list[Event] = field(default_factory=list)
    live: dict[TableName, int] = field(default_factory=dict)
    lines: dict[TableName, int] = field(default_factory=dict)
    newest: int = 0

    def create(self, table: TableName, version: int) -> None:
        self.live[table], self.lines[table] = version, len(self.log)
        self.newest = version
        self.log.append(Event("create", table, version))

    def insert(self, table: TableName) -> None:
        self.log.append(Event("row", table, self.live[table], self.lines[table]))

    def alter(self, table: TableName) -> None:
        self.live[table] += 1
        self.newest = max(self.newest, self.live[table])
        self.log.append(Event("ddl", table, self.live[table]))

    def drop(self, table: TableName) -> None:
        self.log.append(Event("drop", table, self.live.pop(table)))

    def rename(self, old: TableName, new: TableName) -> None:
        self.live[new], self.lines[new] = self.live.pop(old), self.lines[old]
        self.log.append(Event("rename", old, self.live[new], other=new))


@dataclass
class Subtask:
    """What is durable of one source: how far its log is read, its group, the statement that it has begun to run."""

    at: int = 0
    group: dict[TableName, str] = field(default_factory=dict)
    reported: bool = False
    resolved: int = 0
    running: int = 0
    announced: bool = False
    away: bool = False

    def load(self, source: str) -> ShardingGroup:
        tables = {name: TableState.from_dict(json.loads(form)) for name, form in self.group.items()}
        return ShardingGroup(source, TARGET, tables, self.resolved, self.reported)

    def save(self, group: ShardingGroup) -> None:
        self.group = {name: json.dumps(state.to_dict()) for name, state in group.tables.items()}
        self.reported, self.resolved = group.reported, group.resolved


class World:
    def __init__(self, *, strict: bool = True) -> None:
        self.target = Target(strict=strict)
        self.upstreams = {source: Upstream() for source in SOURCES}
        self.subtasks = {source: Subtask() for source in SOURCES}
        self.silent = frozenset(SOURCES)
        self.form = LockKeeper("task", TARGET, self.silent).to_dict()

    @property
    def locks(self) -> LockKeeper:
        return LockKeeper.from_dict("task", TARGET, self.silent, json.loads(json.dumps(self.form)))

    def announce(self, source: str) -> None:
        """A start, the first one or another."""
        subtask = self.subtasks[source]
        if subtask.away:
            self.silent, subtask.away = self.silent | {source}, False
        if not subtask.announced:
            # the tables of the start are not in the log that is followed: it begins behind their snapshot
            group = ShardingGroup(source, TARGET, {name: TableState() for name in self.upstreams[source].live})
            subtask.save(group)
            subtask.announced = True
        self._save(source, subtask.load(source), self.locks)
        self.silent -= {source}

    def take_out(self, source: str) -> None:
        """The source is no part of the task until it is announced again."""
        running = self.subtasks[source].running
        begun = {"runs": running} if running else None
        self.form = self.locks.take_out(source, begun).to_dict()
        self.silent -= {source}
        self.subtasks[source].away = True

    def follows(self, source: str) -> bool:
        """Whether it has begun, and is part of the task."""
        return self.subtasks[source].announced and not self.subtasks[source].away

    def choices(self, source: str) -> list[str]:
        """What the sync loop of the source may do next; the first is what it should."""
        subtask = self.subtasks[source]
        if not subtask.announced or subtask.away:
            return ["announce"]
        found = []
        group = subtask.load(source)
        outcome = self.locks.outcome(source) if group.reported else None
        if group.reported and group.ready and outcome is None:
            return ["join"]
        if subtask.running and outcome is Outcome.EXECUTE:
            return ["run" if subtask.running not in self.target.executed else "close"]
        if subtask.running:
            return ["skip" if outcome is Outcome.SKIP else "wait"]
        if outcome is Outcome.EXECUTE:
            found.append("execute")
        if outcome is Outcome.SKIP:
            found.append("skip")
        if self._resync(source) is not None:
            found.append("resync")
        if group.ready and not group.reported:
            found.append("join")
        if subtask.at < len(self.upstreams[source].log):
            found.append("read")
        return found

    def step(self, source: str, what: str, part: int = 1 << 30) -> None:
        """One transaction. `part`: how many events a re-sync reads again."""
        subtask, locks = self.subtasks[source], self.locks
        group, at = subtask.load(source), place(subtask.at)
        match what:
            case "announce":
                return self.announce(source)
            case "wait":
                subtask.running = 0
            case "run":
                return self.target.run(subtask.running)
            case "execute":
                assert group.ready is not None
                subtask.running = number_of(group.ready.ddls)
                return None
            case "close" | "skip":
                group, locks = group.resolve(at), locks.done(source)
                subtask.running = 0
            case "join":
                ready = group.ready
                assert ready is not None
                group, locks = group.report(), locks.join(source, ready.ddls, "now")
            case "resync":
                group = self._read_again(source, group, at, part)
            case "read":
                group = self._read(source, group)
                subtask.at += 1
        self._save(source, group, locks)
        return None

    def _save(self, source: str, group: ShardingGroup, locks: LockKeeper) -> None:
        self.subtasks[source].save(group)
        self.form = locks.declare(source, group.tables.keys()).to_dict()

    def _resync(self, source: str) -> Resync | None:
        subtask = self.subtasks[source]
        return subtask.load(source).resync(place(subtask.at))

    def _read_again(self, source: str, group: ShardingGroup, at: Location, part: int) -> ShardingGroup:
        resync = group.resync(at)
        assert resync is not None
        upto = min(resync.begin.position.offset + part * WIDTH, resync.end.position.offset)
        for index, event in enumerate(self.upstreams[source].log):
            begin, end = resync.windows.get(event.table, (at, at))
            offset = place(index).position.offset
            if event.kind == "row" and begin.position.offset <= offset < min(end.position.offset, upto):
                self.target.write(source, index, event)
        return group.resynced(Location(Position("bin.000001", upto)), at)

    def _read(self, source: str, group: ShardingGroup) -> ShardingGroup:
        index = self.subtasks[source].at
        event = self.upstreams[source].log[index]
        begin, end = place(index), place(index + 1)
        match event.kind:
            case "row":
                if event.table not in group.held:
                    self.target.write(source, index, event)
                return group
            case "ddl":
                return group.meet(event.table, DdlItem(begin, end, ddl(event.version)))
            case "create":
                member = self.locks.members.get(source)
                passed = member.passed if member else self.target.version
                return group.add(event.table, end, event.version - passed)
            case "drop":
                return group.drop(event.table, begin)
            case _:
                assert event.other is not None
                return group.rename({event.table: event.other}, begin, end)

    def settle(self) -> Iterator[tuple[str, str]]:
        """Let all sources do what they should until nothing is left to do."""
        busy = True
        while busy:
            busy = False
            for source in SOURCES:
                for what in self.choices(source)[:1]:
                    busy = True
                    yield source, what
                    self.step(source, what)

    def check_end(self) -> None:
        """All is read, nothing is held or waited for, and each row is in the target once, in the order of its table."""
        for source, upstream in self.upstreams.items():
            subtask = self.subtasks[source]
            assert subtask.at == len(upstream.log)
            assert not subtask.load(source).unresolved, (source, subtask.group, self.form)
            expected = [index for index, event in enumerate(upstream.log) if event.kind == "row"]
            assert sorted(index for name, index in self.target.rows if name == source) == expected
            for line in {event.line for event in upstream.log if event.kind == "row"}:
                got = [index for name, index in self.target.rows if name == source and upstream.log[index].line == line]
                assert got == sorted(got)
        assert self.locks.locks == ()
        assert len(self.target.executed) == len(set(self.target.executed))
