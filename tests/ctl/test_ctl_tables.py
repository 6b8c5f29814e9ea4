"""Answers on a terminal: what somebody who was woken up has to see."""

from __future__ import annotations

from io import StringIO
from typing import Any

from rich.console import Console

from unshard.api.status import (
    DumpStatus,
    LoadStatus,
    ProcessError,
    ProcessResult,
    RelayStatus,
    SourceReport,
    SourceStatus,
    Stage,
    SubTaskStatus,
    SyncStatus,
    TableLedger,
    UnitName,
    UnresolvedGroup,
)
from unshard.ctl.tables import rendered

ERROR = ProcessError(
    ErrCode="TARGET-011",
    Message="TARGET-011 [source shop-02]: no [space] left\n  what to do: make room",
    Workaround="make room",
    place="(mysql-bin.000003, 99)",
)
GROUP = UnresolvedGroup(
    target="`shop`.`orders`",
    DDLs=("ALTER TABLE `shop`.`orders` ADD COLUMN c INT",),
    first_location="(mysql-bin.000003, 4)",
    synced=("`shop_1`.`orders`",),
    unsynced=("`shop_2`.`orders`",),
    since="2026-11-21T11:02:00Z",
    waits_for="shop-02 has not run it",
    mismatch=("shop-01: ADD c INT", "shop-02: ADD c BIGINT"),
    help="unshard ctl shard-ddl-lock unlock 'orders-`shop`.`orders`'",
)


def text_of(verb: str, answer: dict[str, Any]) -> str:
    told = StringIO()
    console = Console(file=told, force_terminal=True, width=160, color_system=None)
    for part in rendered(verb, answer):
        console.print(part, markup=False, highlight=False, soft_wrap=isinstance(part, str))
    return told.getvalue()


def status(*reports: SourceReport) -> dict[str, Any]:
    forms = [{"result": True, "msg": "", **report.model_dump(mode="json", by_alias=True)} for report in reports]
    return {"result": True, "msg": "", "sources": forms}


def report(source: str, *subtasks: SubTaskStatus, relay: RelayStatus | None = None) -> SourceReport:
    where = SourceStatus(source=source, worker="w1", relay_status=relay)
    return SourceReport(source_status=where, sub_task_status=subtasks)


def test_a_task_that_stands_still_says_why_and_what_to_do() -> None:
    sync = SyncStatus(syncer_binlog="(mysql-bin.000003, 4)", seconds_behind_master=75, backlog_bytes=3_200_000)
    stopped = SubTaskStatus(
        name="orders", stage=Stage.PAUSED, unit=UnitName.SYNC, sync=sync, result=ProcessResult(errors=(ERROR,))
    )
    told = text_of("query-status", status(report("shop-02", stopped)))
    for part in ("shop-02", "orders", "Paused", "Sync", "lag 75 s", "backlog 3.2 MB", "at (mysql-bin.000003, 4)"):
        assert part in told
    assert "no [space] left" in told
    assert told.count("make room") == 1
    assert "at: (mysql-bin.000003, 99)" in told


def test_each_unit_tells_how_far_it_is() -> None:
    dump = DumpStatus(total_tables=4, completed_tables=1, finished_rows=1234, progress="25.00 %", bps=2_000_000)
    load = LoadStatus(finished_bytes=1_000_000, total_bytes=2_000_000, progress="50.00 %")
    sync = SyncStatus(recent_rps=1500, safe_mode="behind a dump without a lock", syncer_binlog="(f.000001, 4)")
    told = text_of(
        "query-status",
        status(
            report("a", SubTaskStatus(name="t", stage=Stage.RUNNING, unit=UnitName.DUMP, dump=dump)),
            report("b", SubTaskStatus(name="t", stage=Stage.RUNNING, unit=UnitName.LOAD, load=load)),
            report("c", SubTaskStatus(name="t", stage=Stage.RUNNING, unit=UnitName.SYNC, sync=sync)),
            report("d", SubTaskStatus(name="t", stage=Stage.NEW, note="waits for its turn")),
            report("e"),
        ),
    )
    lines = {line.split()[0]: line for line in told.splitlines() if line}
    assert "25.00 %  1,234 rows  1 of 4 tables  2.0 MB/s" in lines["a"]
    assert "50.00 %  1.0 MB of 2.0 MB" in lines["b"]
    assert "lag unknown" in lines["c"]
    assert "1,500 rows/s" in lines["c"]
    assert "safe mode (behind" in lines["c"]
    assert "waits for its turn" in lines["d"]
    assert "InvalidUnit" not in told
    assert "no task" in lines["e"]


def test_sharding_ddl_that_waits_and_a_paused_relay_are_told() -> None:
    sync = SyncStatus(unresolved_groups=(GROUP,), tables=(TableLedger(table="shop.orders", counts={"decoded": 12345}),))
    relay = RelayStatus(stage=Stage.PAUSED, relay_binlog="(mysql-bin.000003, 4)", result=ProcessResult(errors=(ERROR,)))
    one = SubTaskStatus(name="orders", stage=Stage.RUNNING, unit=UnitName.SYNC, sync=sync)
    told = text_of("query-status", status(report("shop-01", one, relay=relay)))
    for part in (
        "DDL of `shop`.`orders` waits",
        "missing: `shop_2`.`orders`",
        "mismatch: shop-02: ADD c BIGINT",
        "what to do: unshard ctl shard-ddl-lock unlock",
        "its relay is Paused",
        "12,345",
    ):
        assert part in told, told


def test_all_tasks_in_short_have_the_broken_ones_first() -> None:
    tasks = [
        {"taskName": "a", "taskStatus": "Running", "sources": ["s1"]},
        {"taskName": "b", "taskStatus": "Error - Some error occurred in subtask", "sources": ["s1", "s2"]},
    ]
    lines = text_of("query-status", {"result": True, "msg": "", "tasks": tasks}).splitlines()
    assert lines[1].startswith("b ")
    assert "s1, s2" in lines[1]
    assert lines[2].startswith("a ")
    assert "start-task" in text_of("query-status", {"result": True, "msg": "", "tasks": []})
    assert text_of("query-status", {"result": False, "msg": "no such task"}).strip() == "no such task"


def test_members() -> None:
    masters = [
        {"name": "m1", "alive": True, "clientURLs": ["127.0.0.1:1"]},
        {"name": "m2", "alive": False, "clientURLs": ["127.0.0.1:2"]},
    ]
    workers = [
        {"name": "w1", "addr": "127.0.0.1:3", "stage": "bound", "source": "s1"},
        {"name": "w2", "stage": "offline"},
    ]
    members = [
        {"leader": {"msg": "", "name": "m1", "addr": "127.0.0.1:1"}},
        {"master": {"msg": "", "masters": masters}},
        {"worker": {"msg": "", "workers": workers}},
    ]
    told = text_of("list-member", {"result": True, "msg": "", "members": members})
    lines = {line.split()[0]: line.split() for line in told.splitlines() if line}
    assert lines["m1"] == ["m1", "yes", "yes", "127.0.0.1:1"]
    assert lines["m2"] == ["m2", "NO", "127.0.0.1:2"]
    assert lines["w1"] == ["w1", "bound", "s1", "127.0.0.1:3"]
    assert lines["w2"] == ["w2", "offline"]
    only = text_of("list-member", {"result": True, "msg": "", "members": members[:1]})
    assert only.strip() == "leader: m1 127.0.0.1:1"


def test_locks_have_who_is_missing_and_the_command() -> None:
    lock = {
        "ID": "orders-`shop`.`orders`",
        "task": "orders",
        "mode": "pessimistic",
        "owner": "s1",
        "DDLs": ["ALTER TABLE `shop`.`orders` ADD COLUMN c INT"],
        "synced": ["s1"],
        "unsynced": ["s2"],
        "help": "run the DDL on s2",
    }
    told = text_of("shard-ddl-lock", {"result": True, "msg": "", "locks": [lock]})
    assert "waits for  s2" in told
    assert "what to do run the DDL on s2" in told
    none = text_of("shard-ddl-lock", {"result": True, "msg": "no DDL lock exists", "locks": []})
    assert "no DDL lock exists" in none
    assert "query-status TASK" in none


def test_results_by_source_and_the_small_forms() -> None:
    long = "SYNC-068 [source s2]: where it stopped is not known\n  what to do: give the place with -b"
    sources = [
        {"result": True, "msg": "", "source": "s1", "worker": "w1"},
        {"result": False, "msg": long, "source": "s2", "worker": ""},
    ]
    told = text_of("pause-task", {"op": "Pause", "result": False, "msg": "", "sources": sources})
    assert "failed" in told
    assert "s2:" in told
    assert "give the place with -b" in told
    pending = '[{"op": 1, "task": "t", "binlogPos": "(f.000001, 4)", "sqls": []}]'
    listed = {"result": True, "msg": "", "sources": [{"result": True, "msg": pending, "source": "s1", "worker": ""}]}
    assert "skip" in text_of("binlog", listed)
    assert "(f.000001, 4)" in text_of("binlog", listed)
    assert text_of("config", {"result": True, "msg": "", "cfg": "name: t\n"}) == "name: t\n"
    assert text_of("encrypt", {"result": True, "msg": "", "ciphertext": "aes:x"}) == "aes:x\n"
    levels = {"result": True, "msg": "", "members": [{"name": "m1", "level": "debug", "result": True, "msg": ""}]}
    assert "debug" in text_of("log-level", levels)
    assert "failed: no" in text_of("transfer-source", {"result": False, "msg": "no"})
