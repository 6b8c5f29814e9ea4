"""The verbs `compare` and `cutover`, and their flags."""

from __future__ import annotations

import sys
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Annotated

import typer

RowsPerSecond = Annotated[
    int, typer.Option(min=0, metavar="N", help="Most rows a second that are read of the sources; 0: no limit.")
]
SourceLoad = Annotated[
    int,
    typer.Option(min=0, max=100, metavar="PERCENT", help="Most of a source's one core that is asked for; 0: no limit."),
]
Connections = Annotated[
    int, typer.Option(min=0, metavar="N", help="Most ranges at once, each a connection a source; 0: all slots.")
]
Quiet = Annotated[bool, typer.Option("--quiet", "-q", help="No lines of progress on stderr.")]

REPAIRED_AT_ONCE = 10_000
"""Rows of a table that are kept to be repaired before it is compared again."""


def compare(
    task: Annotated[
        Path | None, typer.Argument(metavar="[TASK.yaml]", help="The task file; or give --config.", show_default=False)
    ] = None,
    source: Annotated[
        list[Path] | None,
        typer.Option("--source", "-s", metavar="SOURCE.yaml", help="A source file; once for each source."),
    ] = None,
    config: Annotated[
        Path | None, typer.Option("--config", metavar="FILE", help="A file of sync-diff-inspector, in place of both.")
    ] = None,
    table: Annotated[
        list[str] | None,
        typer.Option(metavar="DB.T", help="Tables of the target, such as shop.order_*; !DB.T leaves one out."),
    ] = None,
    where: Annotated[str, typer.Option(metavar="SQL", help="Only rows for which this is true, on both sides.")] = "",
    ignore_columns: Annotated[
        str, typer.Option(metavar="C,…", help="Columns of the target that are not compared.")
    ] = "",
    sample: Annotated[int, typer.Option(min=1, max=100, metavar="PERCENT", help="Compare that share of ranges.")] = 100,
    chunk_rows: Annotated[int, typer.Option(min=0, metavar="N", help="Rows of a range; 0: by the time it takes.")] = 0,
    source_load: SourceLoad = 10,
    rows_per_second: RowsPerSecond = 0,
    connections: Connections = 0,
    wait: Annotated[
        float, typer.Option(min=0, metavar="SECONDS", help="How long to look again at rows that differ.")
    ] = 300.0,
    hold: Annotated[
        float,
        typer.Option(
            min=0, metavar="SECONDS", help="Lock the sources' tables to compare at one place, at most so long."
        ),
    ] = 0.0,
    limit: Annotated[int, typer.Option(min=0, metavar="N", help="Differences of a table that are shown.")] = 100,
    state: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write progress there, and go on from it if it is there.")
    ] = None,
    parquet: Annotated[Path | None, typer.Option(metavar="FILE", help="Write the differences there too.")] = None,
    sql: Annotated[Path | None, typer.Option(metavar="FILE", help="Write statements that mend the target.")] = None,
    repair: Annotated[
        bool, typer.Option("--repair", help="Make rows of the target that differ what the sources hold; asks first.")
    ] = False,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Repair without asking.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object on stdout.")] = False,
    log: Annotated[Path, typer.Option("--log", metavar="FILE", help="Where Spark's and our own log lines go.")] = Path(
        "unshard-compare.log"
    ),
    quiet: Quiet = False,
) -> None:
    """Compare the rows of a task's sources with those of its target, by the task's own rules.

    It writes to neither. Writers and the task may go on: rows that differ are looked at again once the target has
    what the source had before, and only those that still differ are told.

    With --repair it writes to the target: rows that differ become what the sources hold, and their tables are compared
    again. The task and the writers may go on; a newer change is never overwritten.

    Exit code 0: equal. 1: rows or structures differ. 2: it can't be told, by an error or by rows that kept changing;
    also wrong use. 130: broken off by a second Ctrl-C.
    """
    if (task is None) == (config is None) or (task is not None and not source) or (config is not None and source):
        raise typer.BadParameter(
            "give a task file and a source file with -s for each of its sources, or --config alone"
        )
    _check_repair(repair=repair, yes=yes, other="--config" if config else "--sql" if sql else "")
    from unshard.cli.compare import check_table_rules, compare_diff_file, compare_files
    from unshard.cli.compare_subject import CompareWish
    from unshard.compare.run import CompareSettings

    check_table_rules(table or ())
    load = 0 if hold else source_load  # the writers wait: the sooner the better
    settings = CompareSettings(sample, chunk_rows, connections, rows_per_second, wait, limit, state, hold, load)
    ignored = [name.strip() for name in ignore_columns.split(",") if name.strip()]
    if repair:
        settings = replace(settings, limit=max(limit, REPAIRED_AT_ONCE))
    ask = partial(_agreed, yes=yes) if repair else None
    wish = CompareWish(table or (), where, ignored, settings, parquet, sql, ask, as_json, log, quiet)
    if config is not None:
        raise typer.Exit(compare_diff_file(config, wish))
    assert task is not None
    raise typer.Exit(compare_files(task, source or (), wish))


def _check_repair(*, repair: bool, yes: bool, other: str) -> None:
    if yes and not repair:
        raise typer.BadParameter("--yes goes with --repair")
    if repair and other:
        raise typer.BadParameter(f"give either --repair or {other}")
    if repair and not yes and not sys.stdin.isatty():
        raise typer.BadParameter("--repair asks before it writes; where nobody can answer, give --yes too")


def _agreed(question: str, *, yes: bool) -> bool:
    return yes or typer.confirm(question, err=True)


def cutover(
    task: Annotated[Path, typer.Argument(metavar="TASK.yaml", help="The task file, in DM's format.")],
    source: Annotated[
        list[Path], typer.Option("--source", "-s", metavar="SOURCE.yaml", help="A source file; once for each source.")
    ],
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Nobody writes to the sources any more: don't ask.")] = False,
    read_only: Annotated[
        bool, typer.Option("--read-only", help="Make the sources read-only in place of asking; --back undoes it.")
    ] = False,
    back: Annotated[
        bool, typer.Option("--back", help="Only undo --read-only: give the sources the settings that they had.")
    ] = False,
    wait: Annotated[
        float, typer.Option(min=0, metavar="SECONDS", help="How long to wait for the task, at each step.")
    ] = 3600.0,
    rest: Annotated[
        float, typer.Option(min=0, metavar="SECONDS", help="How long the sources' binlogs have to stay where they are.")
    ] = 5.0,
    source_load: SourceLoad = 0,
    rows_per_second: RowsPerSecond = 0,
    connections: Connections = 0,
    report: Annotated[
        Path | None, typer.Option(metavar="PREFIX", help="Of the report's two files; default: unshard-cutover-NAME.")
    ] = None,
    state: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="How far it is; default: unshard-cutover-NAME.state.json."),
    ] = None,
    as_json: Annotated[bool, typer.Option("--json", help="The report as one JSON object on stdout.")] = False,
    log: Annotated[Path, typer.Option("--log", metavar="FILE", help="Where Spark's and our own log lines go.")] = Path(
        "unshard-cutover.log"
    ),
    quiet: Quiet = False,
) -> None:
    """End a migration: show that the target has all that the sources have, and say how to go on and how to go back.

    The task has to run. The command waits until it has caught up, until nobody writes to the sources any more and until
    the target is at their last binlog positions; there it compares all rows. The report says what was compared, and at
    which positions and GTIDs. The same command goes on where it was broken off.

    Exit code 0: equal, cut over. 1: rows or structures differ. 2: it can't be told: an error, a writer that still
    writes, a task that does not come to the end; also wrong use.
    """
    if not (yes or read_only or back) and not sys.stdin.isatty():
        raise typer.BadParameter("it asks whether the writers have stopped; where nobody can answer, give --yes")
    from unshard.cli.cutover import CutoverWish, cut_over
    from unshard.compare.cutover import CutoverSettings
    from unshard.compare.run import CompareSettings

    settings = CutoverSettings(read_only, wait, rest)
    compared = CompareSettings(connections=connections, rows_per_second=rows_per_second, source_load=source_load)
    ask = partial(_agreed, yes=yes)
    wish = CutoverWish(ask, settings, compared, report, state, back, as_json, log, quiet)
    raise typer.Exit(cut_over(task, source, wish))
