"""A task that is checked, and a lack of it that is mended by just what the check says."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace
from typing import Any

from support.task_runs import TaskFiles
from unshard.checks.result import CheckReport, Finding
from unshard.checks.run import check_task
from unshard.config.files import load_source, load_task
from unshard.config.subtask import plan_subtasks
from unshard.testing.throwaway_server import ThrowawayServer


def report_of(files: TaskFiles, also: Collection[str] = ()) -> CheckReport:
    files.write()
    sources = [load_source(path) for path in files.source_paths]
    task = load_task(files.task_path)
    return check_task(task, plan_subtasks(task, sources), also)


def found(files: TaskFiles, name: str, also: Collection[str] = ()) -> list[Finding]:
    """What the checks of that printed name (or the beginning of it) say."""
    results = [result for result in report_of(files, also).results if result.name.startswith(name)]
    assert results, f"{name} did not run"
    return [finding for result in results for finding in result.errors]


def statement(finding: Finding) -> str:
    """The command that an instruction begins with."""
    return finding.instruction.partition(";")[0]


def mended(files: TaskFiles, name: str, server: ThrowawayServer, severity: str, words: str) -> list[str]:
    """Each lack is of that severity and its text holds `words`; run its command: then there is none. The commands."""
    lacks = found(files, name)
    assert lacks
    assert {finding.severity for finding in lacks} == {severity}
    assert all(words in finding.short_error for finding in lacks), lacks
    commands = [statement(finding) for finding in lacks]
    server.run(*commands)
    assert found(files, name) == []
    return commands


def as_user(server: ThrowawayServer, user: str, *grants: str, host: str = "127.0.0.1") -> dict[str, Any]:
    """A fresh account with those privileges (`SELECT ON *.*`); the login for a file."""
    if server.query("SELECT 1 FROM mysql.user WHERE User = %s AND Host = %s", (user, host)):
        server.run(f"DROP USER `{user}`@`{host}`")
    server.run(f"CREATE USER `{user}`@`{host}`")
    server.run(*(f"GRANT {grant} TO `{user}`@`{host}`" for grant in grants))
    return {"host": "127.0.0.1", "port": server.port, "user": user}


def with_source(files: TaskFiles, login: dict[str, Any]) -> TaskFiles:
    return replace(files, source={"from": login})


def with_keys(files: TaskFiles, **keys: Any) -> TaskFiles:
    return replace(files, keys={**files.keys, **{key.replace("_", "-"): value for key, value in keys.items()}})
