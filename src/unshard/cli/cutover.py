"""`unshard cutover`: the guided end of a migration."""

from __future__ import annotations

import json
import shlex
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from pathlib import Path
from threading import Event

import typer

from unshard.cli.compare import CANNOT_TELL, signals, spark_session
from unshard.cli.compare_subject import CompareSubject, CompareWish, task_subject
from unshard.compare.counters import raise_target_counters
from unshard.compare.cutover import Cutover, CutoverProof, CutoverRecord, CutoverSettings, go_back
from unshard.compare.cutover_report import NextCommands, report_files, report_form, report_lines, write_report
from unshard.compare.places import SourceWatch
from unshard.compare.result import ComparisonOutcome
from unshard.compare.run import CompareSettings
from unshard.config.files import load_files
from unshard.errors import UnshardError, told_together
from unshard.log import LogSettings, configure
from unshard.mysql.connection import session
from unshard.source.read_only import read_only_settings, statements_to_lift, told_read_only
from unshard.spark.address import check_java


@dataclass(frozen=True, slots=True)
class CutoverWish:
    """The options of `unshard cutover`.

    Without `report` or `state`, that file is named after the task. `ask` asks the user a question.
    """

    ask: Callable[[str], bool]
    settings: CutoverSettings = field(default_factory=CutoverSettings)
    compare: CompareSettings = field(default_factory=CompareSettings)
    report: Path | None = None
    state: Path | None = None
    back: bool = False
    as_json: bool = False
    log: Path = Path("unshard-cutover.log")
    quiet: bool = False


def cut_over(task: Path, sources: Sequence[Path], wish: CutoverWish) -> int:
    """Run the steps, write the report and print it; return the exit code. An error is printed on stderr."""
    try:
        return _cut_over(task, sources, wish)
    except UnshardError as error:
        typer.echo(str(error), err=True)
    except ExceptionGroup as group:
        typer.echo(told_together(group), err=True)
    return CANNOT_TELL


def _cut_over(task: Path, sources: Sequence[Path], wish: CutoverWish) -> int:
    def tell(line: str) -> None:
        if not wish.quiet:
            typer.echo(line, err=True)

    files = load_files(task, sources)
    name = files.task.name
    prefix = wish.report or Path(f"unshard-cutover-{name}")
    file = wish.state or Path(f"unshard-cutover-{name}.state.json")
    _refuse_one_file_for_two(prefix, {file: "--state", wish.log: "--log", task: "the task"})
    subject = task_subject(files, CompareWish())
    watches = [SourceWatch(side, subject.target, subject.meta) for side in subject.sides]
    record = CutoverRecord.load(file, name, f"{subject.target.host}:{subject.target.port}")
    if wish.back:
        return _go_back(watches, record, file)
    configure(LogSettings(wish.log))
    check_java(subject.spark.master)
    command = shlex.join([str(task), *(word for path in sources for word in ("-s", str(path)))])
    again = f"{command} {shlex.join(['--state', str(wish.state)])}" if wish.state else command
    stop = Event()
    with signals(stop, tell) as listen:

        def compare(ranges: Path) -> ComparisonOutcome:
            with spark_session(subject, wish.log, tell, listen) as session:
                return subject.compare(_with_state(wish.compare, ranges), session, tell, stop)

        def agreed(names: Sequence[str]) -> bool:
            return wish.ask(f"Has everybody stopped to write to {', '.join(names)}?")

        def counters() -> Sequence[str]:
            return raise_target_counters(subject.plan())

        steps = Cutover(watches, wish.settings, file, record, compare, counters, agreed, tell, stop.is_set)
        try:
            proof = steps.run()
        except UnshardError:
            _tell_of_read_only(steps.record, again, tell)
            raise
        if proof is None or stop.is_set():
            tell("not cut over; the same command goes on from here")
            _tell_of_read_only(steps.record, again, tell)
            return CANNOT_TELL
    return _show(proof, subject, NextCommands(command, again), prefix, wish)


def _refuse_one_file_for_two(prefix: Path, others: Mapping[Path, str]) -> None:
    """Raise BadParameter where the report would be written over another file of the command."""
    of_others = {path.resolve(): what for path, what in others.items()}
    for path in report_files(prefix):
        if (what := of_others.get(path.resolve())) is not None:
            raise typer.BadParameter(f"--report {prefix}: {path} is the file of {what} too; give another prefix")


def _with_state(settings: CompareSettings, ranges: Path) -> CompareSettings:
    return replace(settings, state=ranges, rests=True)


def _show(proof: CutoverProof, subject: CompareSubject, commands: NextCommands, prefix: Path, wish: CutoverWish) -> int:
    text, form = write_report(prefix, proof, subject.sides, commands)
    if wish.as_json:
        typer.echo(json.dumps(report_form(proof, subject.sides, commands), indent=2, ensure_ascii=False))
    else:
        for line in report_lines(proof, subject.sides, commands):
            typer.echo(line)
        typer.echo(f"the report is in {text} and {form}")
    return proof.outcome.exit_code


def _tell_of_read_only(record: CutoverRecord, again: str, tell: Callable[[str], None]) -> None:
    if record.read_only:
        names = ", ".join(sorted(record.read_only))
        tell(f"{names}: read-only; to let them be written to again: unshard cutover {again} --back")


def _go_back(watches: Sequence[SourceWatch], record: CutoverRecord, file: Path) -> int:
    if not file.exists():
        typer.echo(
            f"nothing to do: there is no {file} in {Path.cwd()}. A cut-over that was begun in another folder, or with"
            " --state, has its own file: go there, or name it"
        )
        for watch in watches:
            _tell_of_hand(watch)
        return 0
    done = go_back(watches, record)
    file.unlink(missing_ok=True)
    for line in done or ["nothing to do: this cut-over has made no source read-only"]:
        typer.echo(line)
    for source, settings in sorted(record.read_only.items()):
        for line in told_read_only(source, settings):
            typer.echo(line, err=True)
    return 0


def _tell_of_hand(watch: SourceWatch) -> None:
    """Print how a source that is read-only now can be written to again; nothing where it can't be asked."""
    with suppress(UnshardError), session(watch.side.endpoint, "source") as connection:
        if by_hand := statements_to_lift(read_only_settings(connection)):
            typer.echo(f"{watch.side.source}: is read-only; by hand: {'; '.join(by_hand)}")
