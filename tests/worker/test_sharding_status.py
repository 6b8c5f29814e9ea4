"""Sharding DDL that waits, as `query-status` shows it."""

from __future__ import annotations

from unshard.api.status import Stage, UnresolvedGroup
from unshard.sync.status import Meter
from unshard.worker.report import subtask_form
from unshard.worker.status import SubtaskStatus

ADD = "ALTER TABLE `db`.`t` ADD a INT"


def test_groups_that_wait_are_in_the_status_of_their_task() -> None:
    waits = UnresolvedGroup(target="`db`.`t`", DDLs=(ADD,), mismatch=("1 <> s2: x", "s1: y"), owner="s1")
    meter = Meter(groups=(UnresolvedGroup(target="`db`.`first`"), waits))
    reading = SubtaskStatus("s1", "sync", sync=meter.read(0.0, None), backlog_bytes=0)
    form = subtask_form("task", Stage.RUNNING, "sync", None, reading)
    assert form.unresolved_ddl_lock_id == "task-`db`.`t`"
    assert form.sync is not None
    assert (form.sync.blocking_ddls, form.sync.block_ddl_owner) == ((ADD,), "s1")
    assert form.sync.conflict_msg == "1 <> s2: x\ns1: y"
    assert [group.target for group in form.sync.unresolved_groups] == ["`db`.`first`", "`db`.`t`"]
    assert not form.sync.synced


def test_tables_that_wait_for_others_of_their_source_have_no_lock_yet() -> None:
    meter = Meter(groups=(UnresolvedGroup(target="`db`.`t`", DDLs=(ADD,)),))
    form = subtask_form("task", Stage.RUNNING, "sync", None, SubtaskStatus("s1", "sync", sync=meter.read(0.0, None)))
    assert form.sync is not None
    assert form.sync.blocking_ddls == (ADD,)
    assert form.unresolved_ddl_lock_id == form.sync.block_ddl_owner == ""


def test_without_them_it_says_so() -> None:
    form = subtask_form(
        "task", Stage.RUNNING, "sync", None, SubtaskStatus("s1", "sync", sync=Meter().read(0.0, None), backlog_bytes=0)
    )
    assert form.unresolved_ddl_lock_id == ""
    assert form.sync is not None
    assert form.sync.synced
    assert form.sync.unresolved_groups == ()
