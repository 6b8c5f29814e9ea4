"""A master with a page, over workers that answer what a test gives them: tables, errors, locks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml
from served import tokens

from unshard.api.heartbeat import Heartbeat, PurgeWish, SubtaskBrief
from unshard.api.status import (
    CopyProgress,
    FigureHistory,
    LogTail,
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
    ValidationStatus,
)
from unshard.api.verbs import OperateSource, StartTask, Validation
from unshard.checks.result import CheckReport
from unshard.config.listener import ListenerConfig
from unshard.log.ring import LogRing
from unshard.master.service import Master
from unshard.master.store import Store
from unshard.model.progress import CopyStage, TableProgress
from unshard.model.table import TableName
from unshard.operate.validation import error_form
from unshard.target.validation_errors import ErrorKind, ErrorState, RowError
from unshard.web.audit import AuditLog
from unshard.web.links import WorkerLinks
from unshard.web.master_app import master_app
from unshard.web.server import WebServer
from unshard.worker.agent import log_tail
from unshard.worker.copied_tables import CopiedTables

HOSTILE = "<script>alert(1)</script>\"'&\u202egnp.exe"
ROLES = {"vic": "viewer", "oda": "operator", "ada": "admin"}
RULES: dict[str, Any] = {
    "mysql-instances": [{"source-id": "s1", "block-allow-list": "ours", "route-rules": ["whole"]}],
    "block-allow-list": {"ours": {"do-dbs": ["~^shop", "crm"]}},
    "routes": {
        "whole": {"schema-pattern": "shop_*", "table-pattern": "*", "target-schema": "shop", "target-table": "all"}
    },
}
"""What the source has of `shop_…` is merged into `shop.all`; `crm` keeps its names; all else is left out."""
SINCE = "2026-01-02T03:04:05+00:00"
STEPS = {"decode": 0.2, "filter": 0.03, "map": 0.06, "causality": 0.1, "encode": 0.12, "apply": 0.7}
"""Seconds of a batch, by step."""
SECRET = "it's-hush"
SOURCE: dict[str, Any] = {"host": "127.0.0.1", "user": "root", "password": "", "port": 1}


class TellingLink:
    """A worker of one source that reports `status`; `silent`: it does not beat any more."""

    def __init__(self, status: SubTaskStatus, source: str = "s1") -> None:
        self.status, self.source = status, source
        self.asked = 0
        self.asked_servers = 0
        self.master: Master | None = None
        self.tables: tuple[TableProgress, ...] = ()
        self.copied = CopiedTables(lambda name: TableName("whole", name.table))
        self.copies_asked = 0
        self.kept = FigureHistory()
        self.relay: RelayStatus | None = RelayStatus(stage=Stage.RUNNING, relay_binlog="(mysql-bin.000001, 4)")
        self.ring = LogRing()
        self.unit = UnitName.SYNC
        self._number = 1
        self.silent = False

    def report(self, task: str | None, seconds: float) -> SourceReport:
        self.asked += 1
        return SourceReport(
            source_status=SourceStatus(source=self.source, relay_status=self.relay), sub_task_status=(self.status,)
        )

    def fresh_report(self, task: str | None, seconds: float) -> SourceReport:
        self.asked_servers += 1
        return self.report(task, seconds)

    def copy_progress(self, task: str, life: str, since: int, seconds: float) -> CopyProgress:
        self.copies_asked += 1
        return self.copied.since(self.tables, life, since)

    def history(self, seconds: float) -> FigureHistory:
        return self.kept

    def log_tail(self, life: str, after: int, seconds: float) -> LogTail:
        return log_tail(life, after, self.ring)

    def wake(self) -> None:
        """Tell the master that each of its orders is carried out."""
        if self.master is None or self.source not in self.master.cluster.state.bounds or self.silent:
            return
        state, worker = self.master.cluster.state, f"w{self.source[1:]}"
        rows = [row for row in state.subtasks.values() if row.source == self.source]
        unit = self.unit.value
        briefs = tuple(SubtaskBrief(task=one.task, stage=one.stage, unit=unit, revision=one.newest) for one in rows)
        self._number += 1
        self.master.beat(
            Heartbeat(
                name=worker,
                addr=f"{worker}:1",
                life={"w1": "a", "w2": "b"}[worker],
                number=self._number,
                source=self.source,
                epoch=state.bounds[self.source].epoch,
                subtasks=briefs,
            )
        )

    def purge_relay(self, wish: PurgeWish) -> str:
        return ""

    def resume_relay(self) -> None: ...


def copied(tables: int, odd: str = HOSTILE) -> tuple[TableProgress, ...]:
    """The copy of as many tables, in all stages; `odd` is the name of one."""
    stages = (CopyStage.LOADED, CopyStage.LOADED, CopyStage.LOADING, CopyStage.DUMPED, CopyStage.WAITING)
    rows = {CopyStage.LOADED: 90_000, CopyStage.LOADING: 30_000, CopyStage.WAITING: 0, CopyStage.DUMPED: 0}
    made = [
        TableProgress(TableName("shop", f"orders_{at:05d}"), stages[at % 5], rows[stages[at % 5]], 90_000, 1 << 22)
        for at in range(tables - 1)
    ]
    other = TableProgress(TableName("shop", odd), CopyStage.DUMPING, 12_500, None, 1 << 20)
    return (other, *made)


def error(odd: str = HOSTILE) -> ProcessError:
    return ProcessError(
        ErrCode="SYNC-011",
        Message=f"a row does not fit into table `shop`.`{odd}` of the target",
        RawCause="Data too long for column 'note' at row 1 (1406)",
        Workaround="widen the column in the target, then resume the task",
        place="mysql-bin.000003:1234",
        time=SINCE,
    )


def differing(count: int, odd: str = HOSTILE) -> list[RowError]:
    """Rows that differ, of all kinds; the table of the first one is `odd`, and a column of it where that is hostile."""
    kinds = (ErrorKind.CHANGED, ErrorKind.MISSING, ErrorKind.EXTRA)
    made = []
    for at in range(count):
        kind, other = kinds[at % 3], odd if odd == HOSTILE and at == 0 else "status"
        names = {
            "id": "7",
            other: "sent" if other == "status" else f"old {other}",
            "price": "19.90",
            "note": None,
            "sold": "2026-01-02 03:04:05",
        }
        row = None if kind is ErrorKind.EXTRA else {**names, "id": f"{7 + at}"}
        found = None if kind is ErrorKind.MISSING else {**names, "id": f"{7 + at}"}
        columns: tuple[str, ...] = ()
        if row is not None and found is not None:
            found |= {"price": "18.90", other: "new" if other != "status" else "paid"}
            columns = ("price", other)
        table = TableName("shop", odd if at == 0 else f"orders_{at:05d}")
        made.append(
            RowError(
                table, TableName("whole", "orders"), (f"{7 + at}",), kind, row, found, columns, "mysql-bin.000003:900",
                at + 1, "s1", ErrorState.NEW, 1 + at % 2, "2026-01-02 03:04:05",
            )
        )  # fmt: skip
    return made


def validation(new: int = 2, *, stage: str = "Running", fault: str = "", source: str = "s1") -> ValidationStatus:
    return ValidationStatus(
        task="shop", source=source, mode="full", stage=stage, validator_binlog="(mysql-bin.000003, 1000)",
        processed_rows_status="insert/update/delete: 90/9/1", pending_rows_status="insert/update/delete: 1/2/0",
        error_rows_status=f"new/ignored/resolved: {new}/1/3",
        result=ProcessResult(errors=(ProcessError(ErrCode=fault, Message="too many rows"),)) if fault else None,
    )  # fmt: skip


def status(
    tables: int = 3,
    *,
    wrong: bool = False,
    locked: bool = False,
    lag: int | None = 2,
    validated: ValidationStatus | None = None,
    odd: str = HOSTILE,
    batches: int = 0,
) -> SubTaskStatus:
    """`batches`: so many have ended, each of which took a second."""
    names = [f"shop.orders_{number:05d}" for number in range(tables - 1)]
    entries = [TableLedger(table=name, counts={"inserted": 5, "updated": 2, "deleted": 1}) for name in names]
    other = TableLedger(table=odd, counts={"inserted": 1})
    group = UnresolvedGroup(
        target="`shop`.`orders`", DDLs=("ALTER TABLE `orders` ADD COLUMN `c` INT",), synced=("s1",), unsynced=("s2",),
        since=SINCE, waits_for="s2 has not met it in shop.orders_2", owner="s1",
    )  # fmt: skip
    sync = SyncStatus(
        recent_rps=1234, seconds_behind_master=lag, backlog_bytes=4096, syncer_binlog="(mysql-bin.000003, 1234)",
        tables=(other, *entries), unresolved_groups=(group,) if locked else (), batches=batches,
        batch_seconds=batches, step_seconds={step: batches * part for step, part in STEPS.items()},
    )  # fmt: skip
    result = ProcessResult(errors=(error(odd),)) if wrong else None
    stage = Stage.PAUSED if wrong else Stage.RUNNING
    return SubTaskStatus(name="shop", stage=stage, unit=UnitName.SYNC, sync=sync, result=result, validation=validated)


@dataclass(frozen=True, slots=True)
class PageServed:
    master: Master
    server: WebServer
    link: TellingLink
    audit: Path
    other: TellingLink
    """The worker of `s2`, where there is that source."""

    @property
    def url(self) -> str:
        return f"http://{self.server.address}/ui/"

    def set(self, status: SubTaskStatus) -> None:
        self.link.status = status
        self.server._app.state.page.look()

    def copy(self, tables: tuple[TableProgress, ...]) -> None:
        self.link.tables = tables
        self.server._app.state.page.look()

    def sources_have(self, names: Sequence[TableName]) -> None:
        """The source answers with these tables when it is asked for its routes."""
        self.server._app.state.page.routes.names_of = lambda config: names

    def target_has(self, errors: Sequence[RowError], stopped: int = 1, odd: str = HOSTILE) -> list[Validation]:
        """The target answers with these rows, and as many tables that are left out. Returns what it is asked."""
        asked: list[Validation] = []

        def answer(request: Validation) -> dict[str, Any]:
            asked.append(request)
            if request.op == "show-error":
                return {"msg": "", "error": [error_form(one) for one in errors][: request.limit]}
            told = self.link.status.validation
            table = {"source": "s1", "srcTable": odd, "dstTable": "t", "stage": "Stopped", "message": "no key"}
            good = {**table, "srcTable": "`shop`.`orders`", "stage": "Running"}
            validators = [told.model_dump(mode="json", by_alias=True)] if told is not None else []
            return {"msg": "", "validators": validators, "tableStatuses": [good, *[table] * stopped]}

        self.server._app.state.page.validations._answer = answer
        return asked

    def lose_the_second_worker(self) -> None:
        """The worker of `s2` is silent from now on, and no worker is free."""
        self.other.silent = True
        self.master.liveness.forget("w2")
        self.master.cluster.seat()
        self.server._app.state.page.look()

    def wanted(self) -> Stage:
        return self.master.cluster.state.subtasks["shop", "s1"].stage


def task_file(name: str, sources: Sequence[str]) -> str:
    target = {**SOURCE, "password": SECRET}
    task: dict[str, Any] = {"name": name, "task-mode": "all", "target-database": target, **RULES}
    task["mysql-instances"] = [{**RULES["mysql-instances"][0], "source-id": source} for source in sources]
    return yaml.safe_dump(task)


@contextmanager
def page_served(
    folder: Path, told: SubTaskStatus, *, guarded: bool = True, sources: tuple[str, ...] = ("s1",)
) -> Iterator[PageServed]:
    """Without `guarded` there is no file of tokens. `sources`: `s1`, served by `w1`, and `s2`, served by `w2`."""
    given: dict[str, Any] = {"token_file": str(tokens(folder, **ROLES))} if guarded else {}
    config = ListenerConfig(**given)
    link, other = TellingLink(told), TellingLink(told, "s2")
    links = WorkerLinks(config, "http", 1.0)
    master = Master(
        Store("sqlite://"), {"w1:1": link, "w2:1": other}.__getitem__, "m1", lease_seconds=3600.0,
        worker_ttl_seconds=3600.0, check=lambda *given: CheckReport(()), ask=lambda config: None,
    )  # fmt: skip
    audit = folder / "audit.log"
    server = WebServer(master_app(master, AuditLog(str(audit)), links.client), config, "127.0.0.1:0")
    master.advertise(server.address)
    master.start()
    master.beat(Heartbeat(name="w1", addr="w1:1", life="a", number=1))
    master.beat(Heartbeat(name="w2", addr="w2:1", life="b", number=1))
    link.master = other.master = master
    for name in sources:
        form = yaml.safe_dump({"source-id": name, "from": SOURCE})
        master.operate_source(OperateSource(op="create", config=(form,), worker=f"w{name[1:]}"))
    master.start_task(StartTask(task=task_file("shop", sources)), checked=True)
    server.start()
    try:
        yield PageServed(master, server, link, audit, other)
    finally:
        server.stop(1)
        master.close()
        links.close()
