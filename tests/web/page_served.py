"""A master with a page, over workers that answer what a test gives them: tables, errors, locks."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from served import tokens

from unshard.api.heartbeat import Heartbeat, PurgeWish, SubtaskBrief
from unshard.api.status import (
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
from unshard.api.verbs import OperateSource, StartTask
from unshard.checks.result import CheckReport
from unshard.config.listener import ListenerConfig
from unshard.master.service import Master
from unshard.master.store import Store
from unshard.web.audit import AuditLog
from unshard.web.master_app import master_app
from unshard.web.server import WebServer
from unshard.web.worker_link import WorkerLinks

HOSTILE = "<script>alert(1)</script>\"'&\u202egnp.exe"
ROLES = {"vic": "viewer", "oda": "operator", "ada": "admin"}
SOURCE = {"host": "127.0.0.1", "user": "root", "password": "", "port": 1}


class TellingLink:
    """A worker of the source `s1` that reports `status`."""

    def __init__(self, status: SubTaskStatus) -> None:
        self.status = status
        self.asked = 0
        self.master: Master | None = None
        self._number = 1

    def report(self, task: str | None, seconds: float) -> SourceReport:
        self.asked += 1
        relay = RelayStatus(stage=Stage.RUNNING, relay_binlog="(mysql-bin.000001, 4)")
        return SourceReport(source_status=SourceStatus(source="s1", relay_status=relay), sub_task_status=(self.status,))

    def wake(self) -> None:
        """Tell the master that each of its orders is carried out."""
        if self.master is None or "s1" not in self.master.cluster.state.bounds:
            return
        state = self.master.cluster.state
        rows = [row for row in state.subtasks.values() if row.source == "s1"]
        briefs = tuple(SubtaskBrief(task=one.task, stage=one.stage, revision=one.newest) for one in rows)
        self._number += 1
        self.master.beat(
            Heartbeat(
                name="w1",
                addr="w1:1",
                life="a",
                number=self._number,
                source="s1",
                epoch=state.bounds["s1"].epoch,
                subtasks=briefs,
            )
        )

    def purge_relay(self, wish: PurgeWish) -> str:
        return ""

    def resume_relay(self) -> None: ...


def error() -> ProcessError:
    return ProcessError(
        ErrCode="SYNC-011",
        Message=f"the row does not fit {HOSTILE}",
        RawCause="Data too long for column 'c'",
        Workaround="widen the column, then resume the task",
        place="mysql-bin.000003:1234",
        time="2026-01-02T03:04:05+00:00",
    )


def status(tables: int = 3, *, wrong: bool = False, locked: bool = False, lag: int | None = 2) -> SubTaskStatus:
    names = [f"`shop`.`orders_{number:05d}`" for number in range(tables - 1)]
    entries = [TableLedger(table=name, counts={"inserted": 5, "updated": 2, "deleted": 1}) for name in names]
    hostile = TableLedger(table=HOSTILE, counts={"inserted": 1})
    group = UnresolvedGroup(
        target="`shop`.`orders`", DDLs=("ALTER TABLE `orders` ADD COLUMN `c` INT",), synced=("s1",), unsynced=("s2",),
        since="2026-01-02T03:04:05+00:00", waits_for="s2 has not met it in shop.orders_2", owner="s1",
    )  # fmt: skip
    sync = SyncStatus(
        recent_rps=1234, seconds_behind_master=lag, backlog_bytes=4096, syncer_binlog="(mysql-bin.000003, 1234)",
        tables=(hostile, *entries), unresolved_groups=(group,) if locked else (),
    )  # fmt: skip
    result = ProcessResult(errors=(error(),)) if wrong else None
    stage = Stage.PAUSED if wrong else Stage.RUNNING
    return SubTaskStatus(name="shop", stage=stage, unit=UnitName.SYNC, sync=sync, result=result)


@dataclass(frozen=True, slots=True)
class PageServed:
    master: Master
    server: WebServer
    link: TellingLink
    audit: Path

    @property
    def url(self) -> str:
        return f"http://{self.server.address}/ui/"

    def set(self, status: SubTaskStatus) -> None:
        self.link.status = status
        self.server._app.state.page.look()

    def wanted(self) -> Stage:
        return self.master.cluster.state.subtasks["shop", "s1"].stage


@contextmanager
def page_served(folder: Path, told: SubTaskStatus, *, guarded: bool = True) -> Iterator[PageServed]:
    """Without `guarded` there is no file of tokens."""
    given: dict[str, Any] = {"token_file": str(tokens(folder, **ROLES))} if guarded else {}
    config = ListenerConfig(**given)
    link = TellingLink(told)
    links = WorkerLinks(config, "http", 1.0)
    master = Master(
        Store("sqlite://"), lambda addr: link, "m1", lease_seconds=3600.0, worker_ttl_seconds=3600.0,
        check=lambda *given: CheckReport(()), ask=lambda config: None,
    )  # fmt: skip
    audit = folder / "audit.log"
    server = WebServer(master_app(master, AuditLog(str(audit)), links.client), config, "127.0.0.1:0")
    master.advertise(server.address)
    master.start()
    master.beat(Heartbeat(name="w1", addr="w1:1", life="a", number=1))
    master.beat(Heartbeat(name="w2", addr="w2:1", life="b", number=1))
    link.master = master
    master.operate_source(
        OperateSource(op="create", config=(yaml.safe_dump({"source-id": "s1", "from": SOURCE}),), worker="w1")
    )
    task = {"name": "shop", "task-mode": "all", "target-database": SOURCE, "mysql-instances": [{"source-id": "s1"}]}
    master.start_task(StartTask(task=yaml.safe_dump(task)), checked=True)
    server.start()
    try:
        yield PageServed(master, server, link, audit)
    finally:
        server.stop(1)
        master.close()
        links.close()
