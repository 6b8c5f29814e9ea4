"""A sharded task whose subtasks die, freeze and are taken over at random moments, while random shards live upstream."""

from __future__ import annotations

import random
import re
import time
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Protocol

from support.random_shards import RandomShards, Shard, Step
from support.shard_terms import Terms
from support.task_runs import TaskFiles
from support.waiting import wait_until
from unshard.model.table import TableName
from unshard.testing.applied_once import ddl_statements, not_once
from unshard.testing.binlog_count import RowEvent, row_log
from unshard.testing.throwaway_server import ThrowawayServer
from unshard.testing.tidb_server import TidbServer

STEPS = 60
IN_STEP_SECONDS = 240


class Life(AbstractContextManager["Life"], Protocol):
    """The task at work; one of its sources is disturbed now and then."""

    @property
    def told(self) -> list[str]: ...
    def disturb(self) -> None: ...
    def check(self) -> None: ...
    def in_sync(self) -> bool: ...
    def caught_up(self) -> bool: ...


@dataclass
class Storm:
    """One seed's task on these servers."""

    seed: int
    name: str
    sources: Mapping[str, ThrowawayServer]
    target: ThrowawayServer
    folder: Path
    terms: Terms
    steps: int = STEPS

    def __post_init__(self) -> None:
        self.chosen = random.Random(self.seed)
        for server in self.sources.values():
            for end in ("kept", *range(1, self.terms.schemas + 1)):
                server.run(f"CREATE DATABASE {self.name}_{end}")
        self.life = RandomShards(self.chosen, tuple(self.sources), self.name, self.terms)
        for step in self.life.begin():
            self._do(step)

    def run(self, at_work: Callable[[TaskFiles], Life], often: float = 0.12) -> list[str]:
        """All of it; gives what happened to it. Raises AssertionError where the target is not what it must be.

        `often` is the share of steps behind which a source is disturbed.
        """
        files = self.terms.files(self.folder, self.name, self.sources, self.target)
        with at_work(files) as hosts:
            wait_until(hosts.in_sync, "in sync", IN_STEP_SECONDS)
            for step in self.life.steps(self.steps):
                self._do(step)
                if self.chosen.random() < 0.3:
                    time.sleep(self.chosen.random() * 0.4)
                if self.chosen.random() < often:
                    hosts.disturb()
                hosts.check()
            wait_until(lambda: hosts.caught_up() and not self._held() and not self._locks(), "in step", IN_STEP_SECONDS)
        self._proof()
        return hosts.told

    def _do(self, step: Step) -> None:
        server = self.sources[step.source]
        connection = server.connection()
        session = connection.thread_id()
        with connection.cursor() as cursor:
            for text in step.statements:
                try:
                    cursor.execute(text)
                except Exception as error:
                    error.add_note(text)
                    raise
        connection.close()
        if any(text.startswith("XA PREPARE") for text in step.statements):  # until then it is this session's alone
            asked = f"SELECT 1 FROM information_schema.PROCESSLIST WHERE ID = {session}"
            wait_until(lambda: not server.query(asked), "the session is gone")

    def _held(self) -> int:
        ((count,),) = self.target.query(f"SELECT COUNT(*) FROM `meta_{self.name}`.`{self.name}_syncer_sharding_meta`")
        return int(count)

    def _locks(self) -> int:
        ((count,),) = self.target.query(f"SELECT SUM(locks) FROM `meta_{self.name}`.`{self.name}_shard_lock`")
        return int(count)

    def _proof(self) -> None:
        log: list[RowEvent] = []
        for target, versions in self.life.versions.items():
            merged = self._merged(target)
            self._same_rows(target, merged)
            if not isinstance(self.target, TidbServer):  # there an ALTER of several parts may be several statements
                found = self._statements(merged)
                lacks = [version.change for version in versions[1:]]
                assert len(found) == len(lacks), "\n".join([str(merged), *lacks, "but the target has", *found])
            for source, server in self.sources.items():
                for event in row_log(server, list(self.life.names[target])):
                    if event.kind == "INSERT" and _number(event.after[0]) in self.life.never:
                        continue
                    log.append(self._moved(event, source, merged))
        if not self.terms.exact:
            return
        shown = {
            self._merged(target)
            for target, versions in self.life.versions.items()
            if not isinstance(self.target, TidbServer) or versions[0].identity.shows_history
        }
        left_out = (
            set()
            if self.terms.mapped
            else {text for number in self.life.left_out for text in (str(number), f"'{number}'")}
        )
        known = [event for event in log if event.table in shown]
        against = not_once(known, self.target, sorted(shown), passed_over=left_out)
        assert not against, "\n".join(against)
        self._balance()

    def _merged(self, target: str) -> TableName:
        if target[0] != "o":
            return TableName(f"{self.name}_all", target)
        (name,) = self.life.names[target]
        return name

    def _moved(self, event: RowEvent, source: str, merged: TableName) -> RowEvent:
        bits = self.terms.bits(list(self.sources), source, event.table)
        if not bits:
            return replace(event, table=merged)
        before, after = ((str(bits | _number(i[0])), *i[1:]) if i else () for i in (event.before, event.after))
        return RowEvent(merged, event.kind, before, after)

    def _same_rows(self, target: str, merged: TableName) -> None:
        columns = [
            row[0]
            for row in self.target.query(
                "SELECT COLUMN_NAME FROM information_schema.COLUMNS WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s"
                " ORDER BY ORDINAL_POSITION",
                (merged.schema, merged.table),
            )
        ]
        last = self.life.versions[target][-1]
        assert columns == ["id", "v", *(column.name for column in last.columns)]
        listed = ", ".join(columns)
        wanted = [
            (self._bits(shard) | row[0] if self.terms.mapped else row[0], *row[1:])
            for shard in (*self.life.shards, *self.life.graves)
            if shard.target == target
            for row in self.sources[shard.source].query(f"SELECT {listed} FROM {shard.name}")
        ]
        there = self.target.query(f"SELECT {listed} FROM {merged.quoted}")
        lost, made = Counter(wanted) - Counter(there), Counter(there) - Counter(wanted)
        assert not lost, f"{merged}: lost {lost}\nmade up {made}"
        assert not made, f"{merged}: lost {lost}\nmade up {made}"

    def _bits(self, shard: Shard) -> int:
        name = TableName(*(part.strip("`") for part in (shard.born or shard.name).split(".")))
        return self.terms.bits(list(self.sources), shard.source, name)

    def _statements(self, merged: TableName) -> list[str]:
        start = re.compile(r"(use [^;]*;|set [^;]*;|/\*.*?\*/|\s)*(ALTER|(CREATE|DROP)\s.*INDEX)", re.IGNORECASE)
        name = re.compile(rf"[ ]{merged.schema}\.{merged.table}\b")
        return [
            text for text in ddl_statements(self.target) if start.match(text) and name.search(text.replace("`", ""))
        ]

    def _balance(self) -> None:
        for row in self.target.query(
            "SELECT target, decoded, filtered, compacted, inserted, updated, deleted"
            f" FROM `meta_{self.name}`.`{self.name}_apply_ledger`"
        ):
            _, decoded, filtered, compacted, *applied = row
            assert decoded == filtered + compacted + sum(applied), row


def _number(shown: str) -> int:
    """A key's value in a log."""
    return int(shown.strip("'"))
