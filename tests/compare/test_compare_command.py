"""`unshard compare` as it is typed: exit codes, JSON, what is refused, and files of sync-diff-inspector."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.comparisons import run_file
from support.task_runs import UNSHARD, TaskFiles
from unshard.compare.sync_diff_file import load_diff_file
from unshard.errors import CompareError
from unshard.model.table import TableName
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.throwaway_server import ThrowawayServer

_DIFF = """
check-thread-count = 2
export-fix-sql = false
[data-sources.first]
host = "127.0.0.1"
port = {source}
user = "root"
password = ""
route-rules = ["all"]
[data-sources.tidb0]
host = "127.0.0.1"
port = {target}
user = "root"
[routes.all]
schema-pattern = "{schema}"
table-pattern = "t_*"
target-schema = "{schema}"
target-table = "t"
[table-configs.own]
target-tables = ["{schema}.t"]
range = "id < 4"
ignore-columns = ["w"]
[task]
output-dir = "out"
source-instances = ["first"]
target-instance = "tidb0"
target-check-tables = ["{schema}.t"]
target-configs = ["own"]
"""


@pytest.fixture
def files(
    source_server: MariadbServer, target_server: ThrowawayServer, schema: str, tmp_path: Path
) -> Iterator[TaskFiles]:
    for server in (source_server, target_server):
        server.run(f"CREATE DATABASE {schema}", f"CREATE TABLE {schema}.t_1 (id INT PRIMARY KEY, v INT, w INT)")
        server.run(f"INSERT INTO {schema}.t_1 VALUES (1, 1, 1), (2, 2, 2)")
    keys = {"task-mode": "full"}
    yield TaskFiles(tmp_path, f"task_{schema}", {"s1": source_server}, target_server, (schema,), keys).write()
    for server in (source_server, target_server):
        server.run(f"DROP DATABASE {schema}")


def run(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [UNSHARD, "compare", *words]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=180, check=False)


@pytest.mark.scenarios
@pytest.mark.server
@pytest.mark.spark
def test_exit_codes_and_json(files: TaskFiles, target_server: ThrowawayServer, schema: str) -> None:
    words = ("task.yaml", "-s", "s1.yaml")
    done = run(files.folder, *words)
    assert done.returncode == 0, done.stderr
    assert "are equal" in done.stdout
    assert "comparing 1 tables" in done.stderr
    target_server.run(f"DELETE FROM {schema}.t_1 WHERE id = 2")
    done = run(files.folder, *words, "--json", "-q", "--parquet", "found.parquet")
    assert (done.returncode, done.stderr) == (1, "")
    assert json.loads(done.stdout)["tables"][0]["counts"]["missing"] == 1
    assert (files.folder / "found.parquet").exists()
    path = files.source_paths[0]
    path.write_text(path.read_text().replace(f"port: {files.sources['s1'].port}", "port: 1"))
    done = run(files.folder, *words)
    assert done.returncode == 2, done.stdout + done.stderr
    assert "SOURCE-001" in done.stdout, done.stdout + done.stderr


def test_wrong_use_is_told_before_anything_begins(tmp_path: Path) -> None:
    assert run(tmp_path).returncode == 2
    assert run(tmp_path, "task.yaml").returncode == 2
    assert run(tmp_path, "--config", "diff.toml", "--where", "TRUE").returncode == 2
    done = run(tmp_path, "task.yaml", "-s", "s1.yaml", "--table", "orders")
    assert done.returncode == 2
    assert "--table needs schema.table" in done.stderr
    done = run(tmp_path, "task.yaml", "-s", "s1.yaml")
    assert done.returncode == 2
    assert "CONFIG-002" in done.stderr


@pytest.mark.scenarios
@pytest.mark.server
@pytest.mark.spark
def test_a_file_of_sync_diff_inspector(
    files: TaskFiles, source_server: MariadbServer, target_server: ThrowawayServer, schema: str
) -> None:
    target_server.run(
        f"CREATE TABLE {schema}.t LIKE {schema}.t_1",
        f"INSERT INTO {schema}.t VALUES (1, 1, 7), (2, 2, 8), (3, 3, 9), (4, 5, 9)",
    )
    source_server.run(
        f"CREATE TABLE {schema}.t_2 LIKE {schema}.t_1", f"INSERT INTO {schema}.t_2 VALUES (3, 3, 3), (4, 4, 4)"
    )
    ports = {"source": source_server.port, "target": target_server.port}
    (files.folder / "diff.toml").write_text(_DIFF.format(schema=schema, **ports))
    done = run(files.folder, "--config", "diff.toml", "--json", "-q")
    assert done.returncode == 0, done.stdout + done.stderr
    (table,) = json.loads(done.stdout)["tables"]
    assert (table["table"], table["source_rows"], table["target_rows"]) == (f"{schema}.t", 3, 3)
    assert "are equal" in (files.folder / "out" / "summary.txt").read_text()

    asked = (files.folder / "diff.toml").read_text().replace("export-fix-sql = false", "").replace('["w"]', "[]")
    (files.folder / "diff.toml").write_text(asked)
    target_server.run(f"UPDATE {schema}.t SET w = id WHERE id IN (2, 3)")
    done = run(files.folder, "--config", "diff.toml", "-q")
    assert done.returncode == 1, done.stdout + done.stderr
    assert "fix-on-tidb0.sql has 1 statements" in done.stdout, done.stdout + done.stderr
    run_file(target_server, files.folder / "out" / "fix-on-tidb0.sql")
    assert target_server.query(f"SELECT w FROM {schema}.t WHERE id = 1") == [(1,)]


@pytest.mark.parametrize(
    ("change", "fault"),
    [
        (("[task]", "[tasks]"), "task: Field required"),
        (('"first"]', '"second"]'), "data-sources has no second"),
        (('["all"]', '["some"]'), "routes has no some"),
        (('["own"]', '["other"]'), "table-configs has no other"),
        (('["x.t"]', '["nothing"]'), "nothing is no table of the target"),
        (("check-thread-count = 2", "check-struct-only = true"), "check-struct-only"),
        (("check-thread-count = 2", 'dm-addr = "1.2.3.4:8261"'), "dm-addr"),
        (("[task]", "[task"), "it is no TOML"),
    ],
)
def test_a_file_that_can_not_be_used(change: tuple[str, str], fault: str, tmp_path: Path) -> None:
    path = tmp_path / "diff.toml"
    path.write_text(_DIFF.format(schema="x", source=1, target=2).replace(*change))
    with pytest.raises(CompareError, match="COMPARE-010") as refused:
        load_diff_file(path)
    assert fault in refused.value.message


def test_what_a_file_of_sync_diff_inspector_says(tmp_path: Path) -> None:
    path = tmp_path / "diff.toml"
    path.write_text(_DIFF.format(schema="x", source=1, target=2).replace("[task]", 'index-fields = ["id"]\n[task]'))
    found = load_diff_file(path)
    (side,) = found.sides()
    assert side.route(TableName("x", "t_7")) == TableName("x", "t")
    assert found.wanted(TableName("x", "t"))
    assert not found.wanted(TableName("x", "u"))
    wish = found.wish_for(TableName("x", "t"))
    assert (wish.condition, *wish.ignored) == ("id < 4", "w")
    assert list(found.notices()) == [
        "table-configs.own.index-fields has no effect: ranges follow the target's key, sized by time"
    ]
