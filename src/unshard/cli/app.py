"""The command `unshard`: its subcommands, and its exit after an error. The commands of `ctl` are imported on demand."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from enum import StrEnum
from functools import partial
from pathlib import Path
from typing import Annotated, Any, Literal

import typer
from typer.core import TyperGroup
from typer.main import get_group

from unshard.cli.comparing import compare, cutover
from unshard.cli.loading import loading
from unshard.cli.monitoring import metrics
from unshard.cli.process import FAILED, guarded

CTL = "ctl"


class Verbs(TyperGroup):
    """The command group of `unshard`, which includes the group `ctl`.

    `ctl` is imported at its first use, because it is larger than all other commands together.
    """

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of the commands, `ctl` last."""
        return [*super().list_commands(ctx), CTL]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a command. The verbs of `ctl` are imported at its first use."""
        if cmd_name == CTL and CTL not in self.commands:
            from unshard.ctl.app import ctl

            ctl.info.name = CTL
            self.add_command(get_group(ctl), CTL)
        return super().get_command(ctx, cmd_name)


class Level(StrEnum):
    """A log level, as in `log-level` of a master."""

    DEBUG = "debug"
    INFO = "info"
    WARN = "warn"
    ERROR = "error"


class LineForm(StrEnum):
    """A format of log lines, as in `log-format` of a master."""

    TEXT = "text"
    JSON = "json"


LogFile = Annotated[str, typer.Option("--log-file", metavar="FILE", help="The log file; default: stderr.")]
LogLevel = Annotated[str, typer.Option("-L", "--log-level", help="debug, info, warn or error.")]
LogFormat = Annotated[str, typer.Option("--log-format", help="text or json.")]
Redact = Annotated[bool, typer.Option("--redact-info-log", help="Write ? in the log in place of values of rows.")]
SecretKeyPath = Annotated[str, typer.Option("--secret-key-path", metavar="FILE", help="Key of encrypted passwords.")]

app = typer.Typer(
    name="unshard",
    cls=Verbs,
    no_args_is_help=True,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Copy, follow and merge sharded MySQL and MariaDB tables into one target, exactly once.",
    epilog="Exit code 0: done. 1: an error; its text is on stderr. 2: wrong use. 130: broken off by Ctrl-C.",
)


def _tell_version(wanted: bool) -> None:
    if wanted:
        from importlib import metadata

        typer.echo(f"unshard {metadata.version('unshard')}")
        raise typer.Exit


@app.callback()
def _verbs(
    version: Annotated[
        bool, typer.Option("--version", is_eager=True, callback=_tell_version, help="Print the version and exit.")
    ] = False,
) -> None:
    """Keep `run` a verb of its own."""


@app.command()
def run(
    task: Annotated[Path, typer.Argument(metavar="TASK.yaml", help="The task file, in DM's format.")],
    source: Annotated[
        list[Path], typer.Option("--source", "-s", metavar="SOURCE.yaml", help="A source file; once for each source.")
    ],
    log: Annotated[Path, typer.Option("--log", metavar="FILE", help="Where Spark's and our own log lines go.")] = Path(
        "unshard.log"
    ),
    wait: Annotated[
        float,
        typer.Option(
            "--wait-time-on-stop", min=0, metavar="SECONDS", help="Time that a stop gives the batch in hand to end."
        ),
    ] = 10.0,
    auto_resume: Annotated[
        bool, typer.Option("--auto-resume/--no-auto-resume", help="Wait for an error that may pass, and go on.")
    ] = True,
    remove_meta: Annotated[
        bool,
        typer.Option(
            "--remove-meta", help="Drop the target's records of an earlier run, not its rows, and start anew."
        ),
    ] = False,
    reset: Annotated[
        bool,
        typer.Option(
            "--reset", help="Drop or empty the target tables that this task has created or filled, then start anew."
        ),
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask before --reset.")] = False,
    addr: Annotated[
        str, typer.Option("--addr", metavar="HOST:PORT", help="Where `unshard ctl` finds this run; port 0: any.")
    ] = "127.0.0.1:0",
    open_page: Annotated[bool, typer.Option("--open", help="Open the page of this run in a browser.")] = False,
    log_level: Annotated[
        Level, typer.Option("-L", "--log-level", help="Least severe level that is logged.", case_sensitive=False)
    ] = Level.INFO,
    log_format: Annotated[LineForm, typer.Option("--log-format", help="Form of a log line.")] = LineForm.JSON,
    redact: Redact = False,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print errors only.")] = False,
    json_status: Annotated[
        bool,
        typer.Option("--json-status", help="Status to stdout, a line of JSON a second; the rest to stderr."),
    ] = False,
) -> None:
    """Run a task in this process: dump, load, then follow the binlog until Ctrl-C.

    After an error that may pass, such as a cut of the network, it tells what it waits for and goes on by itself; with
    --no-auto-resume it ends there.

    Ctrl-C finishes the batch in hand and stops; one that takes too long is left to the next start. The same command
    goes on from there.

    In a file or a pipe each line begins with its time (UTC) and its level: INFO, WARN or ERROR. Lines that can't be
    written, to a full disk or a reader that is gone, are dropped; the run goes on, and its log says so once.

    Exit code 0: finished, or stopped by Ctrl-C, SIGTERM or `unshard ctl stop-task`. 1: an error; its text is on stderr.
    2: wrong use; nothing was started. 130: broken off by a second Ctrl-C; the next start finishes the batch.
    """
    with loading():
        from unshard.cli.printer import Printer, error_text
        from unshard.config.files import load_files
    on_stderr = partial(error_text, stream=sys.stderr)
    files = guarded(lambda: load_files(task, source), on_stderr)  # a mistake in them is told before the rest is loaded
    with loading():
        from rich.console import Console

        from unshard.cli.json_status import JsonStatus
        from unshard.cli.output import output_to
        from unshard.cli.run import run_task
        from unshard.log import LogSettings

    how = LogSettings(None, log_level.value, log_format.value, redact)
    begun = partial(run_task, remove_meta=remove_meta, reset=reset, yes=yes)
    with output_to(sys.stdout) as out, output_to(sys.stderr) as err:
        shown = JsonStatus(out, files.task.name, redact) if json_status else None
        with_what = partial(begun, auto_resume=auto_resume, addr=addr, log=how, status=shown, opens=open_page)
        printer = Printer(Console(quiet=quiet, file=err if json_status else out))
        guarded(lambda: with_what(files, log, printer, wait), on_stderr)


@app.command()
def status(
    task: Annotated[Path, typer.Argument(metavar="TASK.yaml", help="The task file, in DM's format.")],
    source: Annotated[
        list[Path], typer.Option("--source", "-s", metavar="SOURCE.yaml", help="A source file; once for each source.")
    ],
    tables: Annotated[bool, typer.Option("--tables", help="Also the row counts of each table.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object, with DM's field names.")] = False,
) -> None:
    """Show a task's progress and row counts, as the target records them.

    It changes nothing. The task may be running or not. Exit code 0: shown, 1: an error, 2: wrong use.
    """
    from unshard.config.files import load_files

    configs = guarded(lambda: load_files(task, source)).subtasks
    from unshard.cli.status import show_status

    guarded(lambda: show_status(configs, print, tables=tables, as_json=as_json))


@app.command()
def explain(
    task: Annotated[Path, typer.Argument(metavar="TASK.yaml", help="The task file, in DM's format.")],
    source: Annotated[
        list[Path] | None,
        typer.Option("--source", "-s", metavar="SOURCE.yaml", help="A source file; each has its own filters."),
    ] = None,
    source_id: Annotated[str | None, typer.Option(metavar="ID", help="Only this source; default: all.")] = None,
    table: Annotated[str | None, typer.Option(metavar="DB.T", help="A table of the source.")] = None,
    sql: Annotated[str | None, typer.Option(metavar="STATEMENT", help="A statement, as on the source.")] = None,
    schema: Annotated[str, typer.Option(metavar="DB", help="Default schema of the statement.")] = "",
    sql_mode: Annotated[str, typer.Option(metavar="MODES", help="Its sql_mode, names with commas.")] = "",
    connect: Annotated[bool, typer.Option("--connect", help="Ask both ends for structures; needs --source.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object.")] = False,
) -> None:
    """Explain a table or a statement: which rule of each kind decides, and the SQL on the target.

    It reads only the files. With --connect it asks both servers too and changes nothing: DDL is tried on empty copies
    in scratch schemas of the target, as a run does. Exit code 0: explained, also where the task would stop, 1: an
    error, 2: wrong use.
    """
    from rich.console import Console

    from unshard.cli.explain import ExplainWish, show_explanation

    if (table is None) == (sql is None):
        raise typer.BadParameter("give either --table or --sql")
    wish = ExplainWish(task, source or (), source_id, table, sql, schema, sql_mode, connect, as_json)
    guarded(lambda: show_explanation(wish, Console()))


app.command()(compare)
app.command()(cutover)


def _given(flags: Mapping[str, Any]) -> dict[str, Any]:
    """Return the flags of a process that were given, as keys of its file."""
    return {name.replace("_", "-"): value for name, value in flags.items() if name != "config" and value}


@app.command()
def master(
    config: Annotated[
        Path | None, typer.Option("--config", metavar="FILE", help="The master's file, YAML or DM's TOML.")
    ] = None,
    name: Annotated[str, typer.Option("--name", help="Name of this master.")] = "",
    master_addr: Annotated[str, typer.Option("--master-addr", metavar="HOST:PORT", help="Where it listens.")] = "",
    advertise_addr: Annotated[
        str, typer.Option("--advertise-addr", metavar="HOST:PORT", help="Where others reach it.")
    ] = "",
    data_dir: Annotated[str, typer.Option("--data-dir", metavar="DIR", help="Folder of the default store.")] = "",
    store: Annotated[str, typer.Option("--store", metavar="URL", help="Database that several masters share.")] = "",
    log_file: LogFile = "",
    log_level: LogLevel = "",
    log_format: LogFormat = "",
    redact_info_log: Redact = False,
    secret_key_path: SecretKeyPath = "",
) -> None:
    """Run a master: it keeps sources and tasks, gives sources to workers, and serves `unshard ctl` and the REST API.

    Flags override the file. Ctrl-C or SIGTERM stops it; tasks go on. Exit code 0: stopped, 1: an error, 2: wrong use.
    """
    given = _given(locals())
    with loading():
        from rich.console import Console

        from unshard.cli.master import run_master

    guarded(lambda: run_master(config, given, Console(stderr=True)))


@app.command()
def worker(
    config: Annotated[
        Path | None, typer.Option("--config", metavar="FILE", help="The worker's file, YAML or DM's TOML.")
    ] = None,
    name: Annotated[str, typer.Option("--name", help="Name of this worker.")] = "",
    worker_addr: Annotated[str, typer.Option("--worker-addr", metavar="HOST:PORT", help="Where it listens.")] = "",
    advertise_addr: Annotated[
        str, typer.Option("--advertise-addr", metavar="HOST:PORT", help="Where masters reach it.")
    ] = "",
    join: Annotated[str, typer.Option("--join", metavar="HOST:PORT,…", help="The masters.")] = "",
    relay_dir: Annotated[str, typer.Option("--relay-dir", metavar="DIR", help="Folder of relay logs.")] = "",
    log_file: LogFile = "",
    log_level: LogLevel = "",
    log_format: LogFormat = "",
    redact_info_log: Redact = False,
    secret_key_path: SecretKeyPath = "",
) -> None:
    """Run a worker: it serves the source that the masters give it, with its relay log and tasks, or is a spare.

    Flags override the file. Ctrl-C or SIGTERM ends the batches in hand and stops it. Exit code 0: stopped, 1: an
    error, 2: wrong use.
    """
    given = _given(locals())
    with loading():
        from rich.console import Console

        from unshard.cli.worker import run_worker

    guarded(lambda: run_worker(config, given, Console(stderr=True)))


@app.command()
def demo(
    source: Annotated[Literal["mariadb", "mysql"], typer.Option(help="Which servers are copied.")] = "mariadb",
    target: Annotated[Literal["mariadb", "tidb"], typer.Option(help="Which server is copied into.")] = "mariadb",
    rows: Annotated[int, typer.Option(help="Rows in each of the eight shards before the copy.")] = 5000,
    seconds: Annotated[int, typer.Option(help="Seconds that the writers go on after the copy.")] = 15,
) -> None:
    """Show the main job on throwaway servers: two sources, eight shards, one merged table, one SIGKILL."""
    from rich.console import Console

    from unshard.cli.demo import run_demo

    guarded(lambda: run_demo(Console(), source=source, target=target, rows=rows, seconds=seconds))


app.add_typer(metrics, name="metrics")

binlog = typer.Typer(no_args_is_help=True, rich_markup_mode=None, help="Read binlog and relay files.")
app.add_typer(binlog, name="binlog")


@binlog.callback()
def _binlog_verbs() -> None:
    """Keep `show` a verb of its own."""


@binlog.command()
def show(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A binlog or relay file.")],
    table: Annotated[str | None, typer.Option(metavar="DB.T", help="Only events of this table.")] = None,
    start: Annotated[
        str | None,
        typer.Option("--from", metavar="POS", help="Start at OFFSET or FILE:OFFSET, or at the next event behind it."),
    ] = None,
    stop: Annotated[str | None, typer.Option("--to", metavar="POS", help="Stop before this position.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, metavar="N", help="At most N events.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print a JSON object per line; values are complete.")] = False,
    full: Annotated[bool, typer.Option("--full", help="Print values and statements in full.")] = False,
) -> None:
    """Show what a binlog or relay file holds: events with DM's names, rows before and after, a summary.

    It connects to no server. Exit code 0: all was read, 1: the file is damaged or rows could not be read
    (stderr says where), 2: wrong use.
    """
    from unshard.cli.binlog import BinlogWish, WrongUse, show_binlog
    from unshard.cli.output import discard

    wish = BinlogWish(table, start, stop, limit, as_json, full)
    try:
        guarded(lambda: _complete(show_binlog(file, wish, print)))
        sys.stdout.flush()
    except WrongUse as error:
        raise typer.BadParameter(str(error)) from None
    except BrokenPipeError:  # `| head` has seen enough; what is left in the buffer has nowhere to go
        discard(sys.stdout.fileno())


def _complete(complete: bool) -> None:
    if not complete:
        raise typer.Exit(FAILED)


def main() -> None:
    """Run the `unshard` script."""
    app(prog_name="unshard")
