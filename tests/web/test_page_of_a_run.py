"""The page of `unshard run`: it shows the run, and its actions act on it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from support.task_runs import Command, TaskFiles
from support.waiting import wait_until
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.throwaway_server import ThrowawayServer

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.page]


@pytest.fixture
def files(
    source_server: MariadbServer, target_server: ThrowawayServer, schema: str, tmp_path: Path
) -> Iterator[TaskFiles]:
    source_server.run(f"CREATE DATABASE {schema}", f"CREATE TABLE {schema}.`<b>t` (id INT PRIMARY KEY)")
    yield TaskFiles(tmp_path, f"task_{schema}", {"s1": source_server}, target_server, (schema,)).write()
    for server in (source_server, target_server):
        server.run(f"DROP DATABASE IF EXISTS {schema}")


def test_a_run_is_seen_paused_and_resumed(files: TaskFiles) -> None:
    (schema,), source, task = files.schemas, files.sources["s1"], files.name

    def count() -> list[tuple[object, ...]]:
        return files.target.query(f"SELECT COUNT(*) FROM {schema}.`<b>t`")

    opened = files.folder / "opened"
    program = files.folder / "browser"
    program.write_text(f'#!/bin/sh\necho "$1" > {opened}\n')
    program.chmod(0o755)
    with Command(files, "", f"export BROWSER={program}", "--open") as command:
        command.catch_up()
        (url,) = re.findall(r"page: (http://127\.0\.0\.1:\d+/ui/)", command.text)
        wait_until(lambda: opened.exists() and opened.read_text().strip() == url, "a browser has the page")
        with httpx.Client(base_url=url, timeout=60) as browser:

            def shown(path: str) -> str:
                return browser.get(path).text

            def do(verb: str) -> None:
                """It is carried out, or on its way (202)."""
                form = shown(f"do/{verb}?name={task}")
                csrf = form.split('name="csrf" value="')[1].split('"')[0]
                answer = browser.post(f"do/{verb}", data={"name": task, "csrf": csrf})
                assert answer.status_code in (200, 202), answer.text

            def comes(words: str, path: str) -> None:
                wait_until(lambda: words in shown(path), f"{words} on {path}", told=lambda: shown(path))

            comes(task, "")
            source.run(f"INSERT INTO {schema}.`<b>t` VALUES (1)")
            wait_until(lambda: count() == [(1,)], "the row arrives")
            comes(f"{schema}.&lt;b&gt;t", f"tasks/{task}/tables")
            comes("unit is over", f"tasks/{task}/log")
            for words in (f"{schema}.&lt;b&gt;t", "loaded", "100 %"):
                comes(words, f"tasks/{task}/copy")
            for words in ("read from the sources", f"{schema}.&lt;b&gt;t"):
                comes(words, f"tasks/{task}/routes")
            assert "paused" not in shown(f"tasks/{task}")
            do("pause-task")
            comes("paused", f"tasks/{task}")
            source.run(f"INSERT INTO {schema}.`<b>t` VALUES (2)")
            do("resume-task")
            wait_until(lambda: count() == [(2,)], "the second row arrives")
        command.interrupt()
        assert command.wait() == 0, command.text
