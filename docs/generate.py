#!/usr/bin/env python3
"""Writes the pages and examples that are made from code: `make docs`. With `--check` it says which are out of date."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

from typer import Context
from typer.core import TyperGroup
from typer.main import get_group
from typer.testing import CliRunner

from unshard import errors
from unshard.checks.run import ITEMS
from unshard.cli.app import app
from unshard.cli.monitoring import alerts_text, dashboard_text
from unshard.config.reference import render as config_page
from unshard.error_catalogue import CATALOGUE, CatalogueEntry
from unshard.master.service import Master
from unshard.master.store import Store
from unshard.metrics import of_process, of_relay, of_sync, of_tasks, of_units
from unshard.metrics.elsewhere import ELSEWHERE
from unshard.metrics.registry import alerts
from unshard.web.audit import AuditLog
from unshard.web.master_app import master_app

REFERENCE = Path(__file__).parent / "reference"
MONITORING = Path(__file__).parent.parent / "examples" / "monitoring"

_ERRORS_HEAD = """# Error codes

Every error tells what failed, where, why, and what to do. WORDS IN CAPITALS are filled in with the values at hand.
*Retryable* errors may pass with nothing changed: the unit that meets one tries again before it gives up.
"""

_CLI_HEAD = """# The command line

| exit code | means |
|---|---|
| 0 | done, or stopped by Ctrl-C or SIGTERM with everything in hand finished |
| 1 | an error; stderr has its code, place and cause, and what to do (see [Error codes](errors.md)) |
| 2 | wrong use; nothing was started |
| 130 | broken off: the demo by Ctrl-C, a run by a second Ctrl-C; the next start finishes the open batch |
"""


_CHECKS_HEAD = """# Checks before the start

`unshard ctl check-task` runs them, and so does every start of `unshard run`. A *fail* keeps the task from starting, a
*warn* is told. Each comes with what mends it. *Name* is what `ignore-checking-items` takes; `all` leaves out every one.
Names and states are DM's, but where Unshard does what DM doesn't: MariaDB is no experiment, binlogs with a part of each
row are followed, no account needs PROCESS, a target table that can't take the rows fails before the copy, and so do
triggers on the target that would change rows (`target_triggers`, a name of our own). Rules that take nothing are told
(`unmatched_rules`, of our own too).

| name | printed as | what is wanted | when | at worst |
|---|---|---|---|---|
"""


_METRICS_HEAD = """# Metrics

Masters and workers give them at `/metrics`, and so does `unshard run`. Names that begin with `dm_` or `dumpling_` are
DM's and mean the same, so that panels and alarms of DM go on; the others are ours.
[Watch a cluster](../how-to/watch-a-cluster.md) has the steps. Labels hold names of tasks, sources, workers, tables and
rules, and nothing else. Counters count from the start of the unit or of the process, as Prometheus wants them; the
series of a task end when it is stopped or finished.

What DM has and this has not is [listed at the end](#metrics-of-dm-that-are-not-here), with what to look at instead.
"""

_METRIC_GROUPS = {
    "Tasks": of_tasks.METRICS,
    "Dump and load": of_units.COPY,
    "Sync": of_sync.METRICS,
    "Sharding DDL": of_units.SHARDING,
    "Relay": of_relay.METRICS,
    "Masters": of_process.CLUSTER,
    "Processes": of_process.PROCESS,
}


def errors_page(catalogue: Mapping[str, CatalogueEntry] = CATALOGUE) -> str:
    """The page of all error codes, a section for each kind in the order of the data flow."""
    kinds = {kind.__name__.removesuffix("Error").upper(): kind for kind in errors.UnshardError.__subclasses__()}
    sections: dict[str, list[str]] = {}
    for code, entry in catalogue.items():
        sections.setdefault(code.split("-")[0], []).append(_error(code, entry))
    parts = [_ERRORS_HEAD]
    for prefix, entries in sections.items():
        parts += [f"## {prefix}: {_subject(kinds[prefix].__name__)}\n", *entries]
    return "\n".join(parts)


def _error(code: str, entry: CatalogueEntry) -> str:
    retryable = " Retryable." if entry.retryable else ""
    return f"### {code}\n\n{_filled(entry.message)}.{retryable}\n\n**What to do:** {_filled(entry.hint)}.\n"


def _filled(template: str) -> str:
    """A text of the catalogue with the names of its values in capitals."""
    return re.sub(r"\{(\w+)[^}]*\}", lambda value: value[1].upper(), template)


def _subject(name: str) -> str:
    """What a kind of error is about, from the tree in the docstring of `unshard.errors`."""
    match = re.search(rf"─ {name}\s+(.+)", errors.__doc__ or "")
    if match is None:
        raise LookupError(f"the docstring of unshard.errors does not tell what a {name} is about")
    return match[1]


def cli_page() -> str:
    """The page of the command line: the help of each command, as it is told."""
    parts = [_CLI_HEAD]
    for words in _commands(get_group(app)):
        told = CliRunner().invoke(app, [*words, "--help"], prog_name="unshard", terminal_width=100)
        parts.append(f"## {' '.join(('unshard', *words))}\n\n```text\n{told.output.strip()}\n```\n")
    return "\n".join(parts)


def _commands(group: Any, before: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    """The words of a command, then those of each command under it."""
    yield before
    if isinstance(group, TyperGroup):
        context = Context(group)
        for name in group.list_commands(context):
            yield from _commands(group.get_command(context, name), (*before, name))


def checks_page() -> str:
    """The page of the checks before a start, in the order in which they run."""
    rows = []
    for item in ITEMS:
        name = f"`{item.ignored}`" if item.ignored else "(always)"
        worst = "" if item.scope == "nothing" else item.worst
        rows.append(f"| {name} | {item.name} | {item.desc} | {item.applies} | {worst} |")
    return _CHECKS_HEAD + "\n".join(rows) + "\n"


def metrics_page() -> str:
    """The page of metrics: those of each part, in the order of the registry, then the alarms."""
    parts = [_METRICS_HEAD]
    for title, group in _METRIC_GROUPS.items():
        parts += [f"## {title}\n", "| metric | kind | labels | unit | what it tells |\n|---|---|---|---|---|"]
        for metric in group:
            labels = ", ".join(f"`{label}`" for label in metric.labels)
            parts.append(f"| `{metric.name}` | {metric.kind} | {labels} | {metric.unit} | {metric.help} |")
        parts.append("")
    parts += ["## Alarms\n", "| alarm | level | when | what to do |\n|---|---|---|---|"]
    for alert in alerts():
        when = alert.expr.replace("|", "\\|") + (f", for {alert.lasting}" if alert.lasting != "0m" else "")
        parts.append(f"| `{alert.name}` | {alert.severity} | `{when}` | {alert.action} |")
    parts += ["\n## Metrics of DM that are not here\n", "| metric of DM | look at, or why not |\n|---|---|"]
    parts += [f"| `{name}` | {told} |" for name, told in ELSEWHERE.items()]
    return "\n".join(parts) + "\n"


def openapi_page() -> str:
    """The API of the master as it describes itself."""
    with TemporaryDirectory() as folder:
        master = Master(Store(f"sqlite:///{folder}/none.db"), _no_link, "master")
        app = master_app(master, AuditLog(""), _no_link)
        return json.dumps(app.openapi(), indent=1, ensure_ascii=False) + "\n"


def _no_link(addr: str) -> Any:
    raise LookupError(addr)


PAGES: dict[str, Callable[[], str]] = {
    "checks.md": checks_page,
    "cli.md": cli_page,
    "config.md": config_page,
    "errors.md": errors_page,
    "openapi.json": openapi_page,
    "metrics.md": metrics_page,
}

FILES: dict[Path, Callable[[], str]] = {
    **{REFERENCE / name: page for name, page in PAGES.items()},
    MONITORING / "alerts.yml": alerts_text,
    MONITORING / "dashboard.json": dashboard_text,
}


def outdated() -> list[str]:
    """Files whose committed text is not what the code says now, by their paths in the project."""
    return [_name(path) for path, text in FILES.items() if _read(path) != text()]


def _name(path: Path) -> str:
    return path.relative_to(REFERENCE.parent.parent).as_posix()


def _read(path: Path) -> str:
    return path.read_text(encoding="utf-8") if path.exists() else ""


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--check", action="store_true", help="write nothing; exit with 1 where a page is out of date")
    check = parser.parse_args().check
    for path, text in FILES.items():
        if _read(path) == text():
            continue
        if check:
            print(f"{_name(path)} is out of date: run `make docs` and commit it")
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text(), encoding="utf-8")
            print(f"wrote {_name(path)}")
    return 1 if outdated() else 0


if __name__ == "__main__":
    sys.exit(main())
