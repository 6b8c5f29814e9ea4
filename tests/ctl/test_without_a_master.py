"""What the files are enough for: the task's records in the target, and the checks."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner

from task_runs import TaskFiles
from unshard.cli.app import app
from unshard.testing.servers import MariadbServer

pytestmark = pytest.mark.server


def test_the_files_lead_to_the_target(
    source_server: MariadbServer, target_server: MariadbServer, schema: str, tmp_path: Path
) -> None:
    files = TaskFiles(tmp_path, schema, {"s1": source_server}, target_server, (schema,)).write()
    task, source = str(files.task_path), str(files.source_paths[0])

    def ctl(*words: str, code: int = 0) -> str:
        done = CliRunner().invoke(app, ["ctl", *words])
        assert done.exit_code == code, done.output
        return done.stdout or done.stderr

    assert json.loads(ctl("shard-ddl-lock", task))["msg"] == "no DDL lock exists"
    assert "SYNC-069" in json.loads(ctl("binlog", "list", task, code=1))["sources"][0]["msg"]
    assert "-s takes s1" in ctl("binlog", "skip", task, "-s", "s2", code=2)
    assert "s2" in ctl("check-task", task, "-s", source, "--also", "s2", code=2)
    assert "file of s1" in ctl("binlog-schema", "update", task, schema, "t", "--from-source", code=2)
    assert "CONFIG-005" in ctl("check-task", task, code=1)
