"""`unshard run`: one process that is a whole migration: Spark, a thread a source, the display, clean ends."""

from __future__ import annotations

import os
import shlex
import signal
import webbrowser
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager, nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path
from threading import Event

import typer

from unshard.checks.grouped import grouped
from unshard.checks.result import DEFAULT_LIMIT
from unshard.checks.run import check_task, found_of, require
from unshard.cli.display import show
from unshard.cli.embedded_cluster import EmbeddedCluster, Texts
from unshard.cli.json_status import JsonStatus
from unshard.cli.output import discard
from unshard.cli.printer import Printer
from unshard.cli.run_file import address_in, recorded
from unshard.config.files import TaskFiles
from unshard.config.listener import ListenerConfig
from unshard.config.subtask import SubtaskConfig
from unshard.config.task import TaskConfig
from unshard.ctl.runs import SUFFIX
from unshard.errors import UnshardError
from unshard.log import LogSettings, configure, logger
from unshard.operate.reset import forget_copy, look, undo
from unshard.spark.address import check_java, local_slots
from unshard.target.receipts import Order
from unshard.web.audit import AuditLog
from unshard.web.links import WorkerLinks
from unshard.web.master_app import master_app
from unshard.web.server import WebServer
from unshard.worker.engine import NOT_STARTED, Engine
from unshard.worker.followed_mark import FollowedMark
from unshard.worker.shared_relay import SharedRelay
from unshard.worker.source_worker import Build, builder
from unshard.worker.subtask import Subtask
from unshard.worker.subtask_runner import WAIT_ON_STOP_SECONDS

ANSWER_SECONDS = 30.0


def run_task(
    files: TaskFiles,
    log_file: Path,
    printer: Printer,
    wait_on_stop: float = WAIT_ON_STOP_SECONDS,
    *,
    auto_resume: bool = True,
    remove_meta: bool = False,
    reset: bool = False,
    yes: bool = False,
    addr: str = "127.0.0.1:0",
    log: LogSettings | None = None,
    status: JsonStatus | None = None,
    opens: bool = False,
) -> None:
    """Run the task until it is finished, stopped by SIGINT or SIGTERM, or failed. `wait_on_stop` is in seconds.

    `remove_meta`: the task's dumps are removed and what the target has on record of the task is dropped first; another
    process that runs it all the same can write nothing from then on and stops. `reset`: the tables that it has made or
    filled go too (`operate.reset`), once whoever sits at the terminal agrees; `yes` agrees beforehand. `status` gets
    the status of the run. `opens`: a browser shows the page of the run.
    Raises the UnshardError of the source that failed first, after the others have finished the batch under way.
    """
    task, configs = files.task, files.subtasks
    configure(replace(log or LogSettings(), file=log_file))
    for notice in files.notices:
        printer.tell(f"note: {notice}")
    stop = Event()
    with (
        recorded(log_file, task.name, redact=log is not None and log.redact) as run,
        status.over(stop) if status is not None else nullcontext(),
        _signals(stop, printer) as listen,
        closing(_engine(log_file, stop, printer)) as engine,
    ):
        check_java(task.spark.master)
        printer.tell(f"checking the target and {_count(len(configs), 'source')}")
        if reset:
            _reset(configs, printer, asks=not yes)
        _check(task, configs, printer)
        if remove_meta and not stop.is_set():
            for folder in forget_copy(configs):
                printer.tell(f"remove-meta: the dump in {folder} is removed")
            _remove_marks(configs)
            _check(task, configs, printer)  # now as a task that begins
        if not stop.is_set() and not local_slots(task.spark.url):
            with _unless(stop):  # the same signal may have ended its JVM before it could be told to go on
                engine.session(task.spark)
                engine.warm()
            listen()  # pyspark has put a handler of its own into place
        texts = Texts(files.texts[0], files.texts[1:])
        crew = EmbeddedCluster(configs, texts, _marking(builder(engine.lazy)), wait_on_stop, auto_resume, stop)
        if not stop.is_set():
            with crew, _served(crew, addr, log_file.with_suffix(SUFFIX), printer) as address:
                run.at(address)
                if opens and not webbrowser.open(f"http://{address}/ui/"):
                    printer.tell("no browser could be started; open the page by its address", "WARN")
                show(printer, crew.readings, crew.ended, partial(status.look, stop) if status is not None else None)
            if status is not None:
                status.sources = crew.readings()
            _join(crew, files.path)
        run.over("somebody stopped it" if stop.is_set() else "it finished")
    for source in crew.broken_off():
        printer.tell(f"{source}: the batch in hand took over {wait_on_stop:g} s; the next start finishes it", "WARN")
    printer.tell("finished" if not stop.is_set() else "stopped; the same command goes on from here")


def _join(crew: EmbeddedCluster, task_file: Path) -> None:
    """Wait for the end of the run. Raises the UnshardError of the source that failed first.

    A job that would have had to start Spark while the run is being stopped is no failure: its batch stays open.
    """
    try:
        crew.join()
    except UnshardError as error:
        if error.code == NOT_STARTED:
            return
        error.values.setdefault("task_file", shlex.quote(str(task_file)))
        raise


def _engine(log_file: Path, stop: Event, printer: Printer) -> Engine:
    """Return the Spark of the run. Its start is told when it happens."""
    return Engine(
        log_file.with_suffix(".spark.log"),
        stop,
        printer.tell,
        lambda error: printer.tell(f"Spark does not start, and large batches need it: {error}", "WARN"),
    )


@contextmanager
def _served(crew: EmbeddedCluster, addr: str, file: Path, printer: Printer) -> Iterator[str]:
    """Serve the API of the cluster's master at `addr`; `file` has the address meanwhile.

    Raises ClusterError 050, 051.
    """
    links = WorkerLinks(ListenerConfig(), "http", ANSWER_SECONDS)
    server = WebServer(master_app(crew.master, AuditLog(""), links.client, crew.samples), ListenerConfig(), addr)
    server.start()
    try:
        crew.master.advertise(server.address)
        with address_in(file, server.address):
            printer.tell(f"ctl: unshard ctl --master-addr {server.address}")
            printer.tell(f"page: http://{server.address}/ui/")
            yield server.address
    finally:
        server.stop(1.0)
        links.close()


@contextmanager
def _unless(stop: Event) -> Iterator[None]:
    """Log an UnshardError, and do not raise it, where it is raised after the stop was asked for."""
    try:
        yield
    except UnshardError as error:
        if not stop.is_set():
            raise
        logger("run").warning("stopped while it began", **error.to_dict())


def _reset(configs: Sequence[SubtaskConfig], printer: Printer, *, asks: bool) -> None:
    """Begin from nothing, by the task's records; they are shown. Raises typer.Abort where the user does not agree."""
    undone = look(configs)
    for line in undone.lines:
        printer.tell(f"reset: {line}")
    if asks:
        typer.confirm("Go on?", abort=True, err=True)
    undo(configs, undone)
    _remove_marks(configs)


def _marking(build: Build) -> Build:
    """Return `build`, whose subtasks leave a mark on this machine once the target has had a checkpoint of them."""

    def marked(config: SubtaskConfig, relay: SharedRelay, order: Order | None) -> Subtask:
        subtask = build(config, relay, order)
        subtask.mark = FollowedMark.of(config)
        return subtask

    return marked


def _remove_marks(configs: Sequence[SubtaskConfig]) -> None:
    for config in configs:
        FollowedMark.of(config).remove()


def _count(number: int, thing: str) -> str:
    return f"{number} {thing}" if number == 1 else f"{number} {thing}s"


def _check(task: TaskConfig, configs: Sequence[SubtaskConfig], printer: Printer) -> None:
    """Run the checks of `ctl check-task`: print warnings. Raises CheckError for a failure."""
    report = check_task(task, configs)
    found = [found_of(result, one) for result, one in report.findings("warn")]
    groups = grouped(found)
    for group in groups[:DEFAULT_LIMIT]:
        printer.tell(f"warning: {group.line}", "WARN")
    if len(groups) > DEFAULT_LIMIT:
        printer.tell(f"warning: and more; `unshard ctl check-task --warn {len(found)}` shows all {len(found)}", "WARN")
    require(report)


@contextmanager
def _signals(stop: Event, printer: Printer) -> Iterator[Callable[[], None]]:
    """Let SIGINT, SIGTERM and SIGHUP set `stop`; yield the way to listen again where another handler replaced this one.

    A second signal has its usual effect, and loses nothing either. SIGHUP comes once or twice when the terminal is
    closed: nothing is printed there any more. A SIGHUP that is ignored from the start, by nohup, stays ignored.

    Used around the start and the end too: a JVM whose parent is interrupted while it starts may stay for ever.
    """

    def ask(number: int, frame: object) -> None:
        del frame
        stop.set()
        if number == signal.SIGHUP:
            for place in terminal:
                discard(place)
        printer.tell("stopping: finishing what is in hand; once more breaks it off")
        signal.signal(number, signal.SIG_IGN if number == signal.SIGHUP else signal.default_int_handler)

    def listen() -> None:
        for number in () if stop.is_set() else kept:
            signal.signal(number, ask)

    terminal = [number for number in (1, 2) if os.isatty(number)]  # one that is gone no longer tells
    heeded = [signal.SIGINT, signal.SIGTERM]
    if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:
        heeded.append(signal.SIGHUP)
    kept = {number: signal.signal(number, ask) for number in heeded}
    try:
        yield listen
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)
