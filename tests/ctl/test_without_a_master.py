"""What the files are enough for: the task's records in the target, and the checks."""

from __future__ import annotations

import getpass
import json
import shlex
from pathlib import Path
from threading import Thread
from typing import Any

import pytest
from typer.testing import CliRunner

from support.reporting_sources import ReportingSources
from support.task_runs import TaskFiles
from unshard.cli.app import app
from unshard.model.table import TableName
from unshard.target.sharding import announce, join
from unshard.testing.mariadb_server import MariadbServer

pytestmark = pytest.mark.server


def ctl(*words: str, code: int = 0) -> str:
    done = CliRunner().invoke(app, ["ctl", *words])
    assert done.exit_code == code, done.output
    return done.stdout or done.stderr


def test_the_files_lead_to_the_target(
    source_server: MariadbServer, target_server: MariadbServer, schema: str, tmp_path: Path
) -> None:
    files = TaskFiles(tmp_path, schema, {"s1": source_server}, target_server, (schema,)).write()
    task, source = str(files.task_path), str(files.source_paths[0])

    assert json.loads(ctl("shard-ddl-lock", task))["msg"] == "no DDL lock exists"
    assert "SYNC-069" in json.loads(ctl("binlog", "list", task, code=1))["sources"][0]["msg"]
    assert "-s takes s1" in ctl("binlog", "skip", task, "-s", "s2", code=2)
    assert "s2" in ctl("check-task", task, "-s", source, "--also", "s2", code=2)
    assert "file of s1" in ctl("binlog-schema", "update", task, schema, "t", "--from-source", code=2)
    assert "CONFIG-005" in ctl("check-task", task, code=1)


@pytest.mark.parametrize("verb", [["shard-ddl-lock", "unlock"], ["unlock-ddl-lock"]], ids=["new name", "old name"])
def test_a_lock_is_unlocked_by_the_file_of_its_task(
    verb: list[str],
    source_server: MariadbServer,
    target_server: MariadbServer,
    schema: str,
    tmp_path: Path,
) -> None:
    """By the command that the list shows; who did it is on record."""
    files = TaskFiles(tmp_path, schema, {"s1": source_server, "s2": source_server}, target_server, (schema,)).write()
    task, target = str(files.task_path), TableName("all", "it's")
    rig = ReportingSources(target_server, files.meta, schema)
    for source in files.sources:
        rig.do(announce, source, {target: [TableName(schema, "t_1")]}, tuple(files.sources))
    rig.do(join, "s1", target, ("ALTER TABLE t ADD a INT",))

    def locks() -> Any:
        return json.loads(ctl("shard-ddl-lock", task))["locks"]

    (lock,) = locks()
    told = shlex.split(lock["help"].split("`unshard ctl ")[1].rpartition("`")[0])
    assert told == ["shard-ddl-lock", "unlock", lock["ID"], task]
    assert "SHARD-003" in ctl(*verb, f"{schema}-`no`.`such`", task, code=1)
    assert "SHARD-004" in ctl(*verb, lock["ID"], task, "--owner", "s2", code=1)
    assert "is no lock of task" in ctl(*verb, f"x{lock['ID']}", task, code=2)
    assert "optimistic mode" in ctl(*verb, lock["ID"], task, "--action", "exec", code=2)
    owner = Thread(target=rig.run_when_told, args=("s1", target), daemon=True)
    owner.start()
    assert json.loads(ctl(*verb, *told[2:])) == {"result": True, "msg": ""}
    owner.join()
    (lock,) = locks()
    assert lock["waitsFor"].startswith(f"unlocked by {getpass.getuser()}@")
