"""`shard-ddl-lock unlock` in optimistic mode: it is for the statement that waits when the command is given."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from support.reporting_sources import ReportingSources
from unshard.api.verbs import ShardDdlLockUnlock
from unshard.config.database import TargetConfig
from unshard.errors import ShardError
from unshard.model.position import Location, Position
from unshard.model.table import Table, TableName
from unshard.operate import locks
from unshard.operate.locks import answer_unlock
from unshard.operate.subject import Subject
from unshard.schema.definition import Dialect, TableDefinition
from unshard.shard.group import ShardingGroup
from unshard.shard.merged_form import structure_of
from unshard.shard.merged_parts import ShardId, StructureRequest
from unshard.shard.merged_table import MergedTable
from unshard.shard.sequence import DdlItem
from unshard.target.sharding import announce, load_merged, move_merged
from unshard.target.sharding_groups import save_group
from unshard.testing.mariadb_server import MariadbServer

TARGET, ID = TableName("db", "t"), "task-`db`.`t`"
SHARD, OTHER = ShardId("s1", TableName("up", "t_1")), ShardId("s2", TableName("up", "t_2"))
FIRST, SECOND = "ALTER TABLE `db`.`t` ADD COLUMN c INT DEFAULT 7", "ALTER TABLE `db`.`t` ADD COLUMN d INT DEFAULT 7"
UNLOCK = ShardDdlLockUnlock(id=ID, action="exec", database="up", table="t_1", sources=("s1",))


def structure(*columns: str, default: int = 7) -> TableDefinition:
    lines = [f"  `{name}` int(11) DEFAULT {default},\n" for name in columns]
    text = (
        "CREATE TABLE `t` (\n  `id` int(11) NOT NULL,\n"
        + "".join(lines)
        + "  PRIMARY KEY (`id`)\n) ENGINE=InnoDB DEFAULT CHARSET=utf8mb4"
    )
    return structure_of(text, Dialect.MARIADB)


FIRST_REQUEST = StructureRequest("1", structure("c"), "", (FIRST,))
SECOND_REQUEST = StructureRequest("2", structure("c", "d"), "", (SECOND,))


@pytest.fixture
def subject(target_server: MariadbServer, schema: str) -> Subject:
    end = target_server.endpoint
    target = TargetConfig(host=end.host, port=end.port, user=end.user, password=end.password)
    return Subject("task", schema, target, ("s1", "s2"))


@pytest.fixture
def rig(target_server: MariadbServer, schema: str) -> Iterator[ReportingSources]:
    """Another shard has both columns with other defaults; this one has met both statements."""
    rig = ReportingSources(target_server, schema, "task")
    for shard in (SHARD, OTHER):
        rig.do(announce, shard.source, {TARGET: [shard.table]}, ("s1", "s2"))
    group = ShardingGroup("s1", TARGET).add(SHARD.table, Location(Position("b.1", 4)))
    for place, request in ((100, FIRST_REQUEST), (200, SECOND_REQUEST)):
        payload = {"before": Table(SHARD.table, ()).to_dict(), "request": {"id": request.id}, "statements": []}
        begin, end = Location(Position("b.1", place)), Location(Position("b.1", place + 9))
        group = group.hold(SHARD.table, DdlItem(begin, end, request.ddls, payload))
    rig.do(save_group, None, group)
    table = MergedTable(TARGET).register(SHARD, structure()).created(OTHER, structure())
    table = table.ask(OTHER, StructureRequest("3", structure("c", "d", default=5), "", ("both",)))
    table = table.done(table.evaluate().changes[0])
    rig.do(move_merged, TARGET, lambda _: table.ask(SHARD, FIRST_REQUEST))
    yield rig
    rig.connection.close()


def comes_into_force(merged: MergedTable) -> MergedTable:
    """The first statement, as another human has let the shard have it."""
    forced = merged.force(SHARD)
    return forced.done(next(change for change in forced.evaluate().changes if SHARD in change.shards))


def request_of(rig: ReportingSources) -> StructureRequest | None:
    return load_merged(rig.connection, rig.meta)[TARGET].shards[SHARD].request


def test_the_answer_has_the_statement(subject: Subject, rig: ReportingSources) -> None:
    assert answer_unlock(subject, UNLOCK, "ann") == {"result": True, "msg": f"takes effect: {FIRST}"}
    found = request_of(rig)
    assert found is not None
    assert found.forced
    answer = answer_unlock(subject, UNLOCK.model_copy(update={"action": "skip"}), "ann")
    assert answer == {"result": True, "msg": f"left out: {FIRST}"}


def test_the_next_statement_is_not_forced_in_its_place(
    subject: Subject, rig: ReportingSources, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Between the look of the command and its decision the first one has come into force."""

    def moved_before(cursor: Any, *values: Any) -> MergedTable:
        monkeypatch.undo()
        rig.do(move_merged, TARGET, lambda merged: comes_into_force(merged).ask(SHARD, SECOND_REQUEST))
        return move_merged(cursor, *values)

    monkeypatch.setattr(locks, "move_merged", moved_before)
    with pytest.raises(ShardError, match="SHARD-003"):
        answer_unlock(subject, UNLOCK, "ann")
    found = request_of(rig)
    assert found is not None
    assert not found.forced


def test_nor_is_it_waited_for(subject: Subject, rig: ReportingSources) -> None:
    """The first statement is in force, and its source has not looked since then."""
    rig.do(move_merged, TARGET, comes_into_force)
    with pytest.raises(ShardError, match="SHARD-003"):
        answer_unlock(subject, UNLOCK, "ann", patience_seconds=600)
