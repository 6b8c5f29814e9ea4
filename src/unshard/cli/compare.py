"""`unshard compare`: compares the rows of a task's sources with those of its target, and prints the result."""

from __future__ import annotations

import json
import signal
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Event

import typer

from unshard.cli.compare_subject import CompareSubject, CompareWish, count_differing, diff_subject, task_subject
from unshard.compare.report import text_lines, write_parquet
from unshard.compare.result import DIFFERENT, EXIT_CODES, CompareVerdict, ComparisonOutcome, RowClass
from unshard.compare.sync_diff_file import load_diff_file
from unshard.config.files import load_files
from unshard.config.table_rules import parse_rule
from unshard.errors import CompareError, UnshardError, Where, told_together
from unshard.log import LogSettings, configure
from unshard.mysql.connection import Endpoint
from unshard.spark.address import check_java
from unshard.spark.session import Session
from unshard.worker.engine import Engine

CANNOT_TELL = EXIT_CODES[CompareVerdict.UNKNOWN]


def check_table_rules(rules: Sequence[str]) -> None:
    """Raise typer.BadParameter for a `--table` that is no rule of a table filter."""
    for rule in rules:
        try:
            parse_rule(rule)
        except ValueError as error:
            raise typer.BadParameter(str(error).replace("--filter", "--table")) from None


def compare_diff_file(path: Path, wish: CompareWish) -> int:
    """Compare what a file of sync-diff-inspector names, as `compare_files`; its `output-dir` gets the outcome too."""
    folder: list[Path] = []

    def subject() -> CompareSubject:
        file = load_diff_file(path)
        if file.task.output_dir:
            folder.append(path.parent / file.task.output_dir)
        return diff_subject(file, *folder)

    def keep(outcome: ComparisonOutcome) -> None:
        for one in folder:
            with _written(one):
                one.mkdir(parents=True, exist_ok=True)
                (one / "summary.txt").write_text("".join(f"{line}\n" for line in text_lines(outcome)))

    return _told(subject, wish, keep)


@contextmanager
def _written(path: Path) -> Iterator[None]:
    try:
        yield
    except OSError as error:
        raise CompareError("COMPARE-012", Where(file=str(path)), cause=str(error)[:300]) from None


def compare_files(task: Path, sources: Sequence[Path], wish: CompareWish) -> int:
    """Compare what a task's files name, and print the outcome; return the exit code. An error is printed on stderr."""
    return _told(lambda: task_subject(load_files(task, sources), wish), wish)


def _told(
    subject: Callable[[], CompareSubject],
    wish: CompareWish,
    keep: Callable[[ComparisonOutcome], None] = lambda outcome: None,
) -> int:
    """Run the comparison, show its errors, and return the exit code. No error has the exit code of a difference."""
    try:
        found = _compare(subject(), wish)
        keep(found)
    except UnshardError as error:
        typer.echo(str(error), err=True)
        return CANNOT_TELL
    except ExceptionGroup as group:
        typer.echo(told_together(group), err=True)
        return CANNOT_TELL
    show_outcome(found, typer.echo, as_json=wish.as_json)
    return found.exit_code


def _compare(subject: CompareSubject, wish: CompareWish) -> ComparisonOutcome:
    """Compare in a Spark session of its own. Raises what its parts raise."""

    def tell(line: str) -> None:
        if not wish.quiet:
            typer.echo(line, err=True)

    configure(LogSettings(wish.log))
    for notice in subject.notices:
        tell(f"note: {notice}")
    check_java(subject.spark.master)
    stop = Event()
    with signals(stop, tell) as listen, spark_session(subject, wish.log, tell, listen) as session:
        found = subject.compare(wish.settings, session, tell, stop, wish.sql)
        if wish.repair is not None and not stop.is_set() and count_differing(found.tables):
            if wish.repair(repair_question(found, subject.target)):
                found = subject.repair(found, wish.settings, session, tell, stop)
            else:
                found = replace(found, notes=(*found.notes, "nothing was repaired"))
    if wish.parquet is not None:
        write_parquet(found, wish.parquet)
    return found


@contextmanager
def spark_session(
    subject: CompareSubject, log: Path, tell: Callable[[str], None], listen: Callable[[], None]
) -> Iterator[Session]:
    """Open a Spark session for a comparison. `listen` puts the handlers of signals back, which pyspark replaces."""
    with closing(Engine(log.with_suffix(".spark.log"))) as engine:
        tell("starting Spark")
        session = engine.session(subject.spark)
        listen()
        yield session


def repair_question(found: ComparisonOutcome, target: Endpoint) -> str:
    """Return the question that is asked before the target is written to."""
    tables = [one for one in found.tables if any(one.classes[kind] for kind in DIFFERENT)]
    counts = "; ".join(
        f"{one.name}: " + ", ".join(f"{one.classes[kind]:,} {kind}" for kind in RowClass if one.classes[kind])
        for one in tables
    )
    return f"{counts}\nMake these rows of {target.host}:{target.port} what the sources hold?"


def show_outcome(outcome: ComparisonOutcome, write: Callable[[str], None], *, as_json: bool) -> None:
    """Print it, as text or as one JSON object."""
    if as_json:
        write(json.dumps(outcome.to_dict(), indent=2, ensure_ascii=False))
        return
    for line in text_lines(outcome):
        write(line)


@contextmanager
def signals(stop: Event, tell: Callable[[str], None]) -> Iterator[Callable[[], None]]:
    """Let SIGINT and SIGTERM end the comparison after the ranges under way; a second one has its usual effect.

    Gives the way to listen again where another handler has taken the place.
    """

    def ask(number: int, frame: object) -> None:
        del frame
        stop.set()
        tell("stopping behind the ranges in hand; with --state the same command goes on from there")
        signal.signal(number, signal.default_int_handler)

    def listen() -> None:
        for number in () if stop.is_set() else kept:
            signal.signal(number, ask)

    kept = {number: signal.signal(number, ask) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield listen
    finally:
        for number, handler in kept.items():
            signal.signal(number, handler)
