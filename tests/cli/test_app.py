"""The command line from outside: exit codes, what goes to which stream, Ctrl-C."""

from __future__ import annotations

import json
import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from unshard.cli.printer import unstamped
from unshard.load.checkpoint import FINISHED, LoadTables
from unshard.model.table import TableName
from unshard.mysql.connection import session
from unshard.target.filled import FilledTables
from unshard.testing.mariadb_server import MariadbServer

UNSHARD = [sys.executable, "-m", "unshard"]
SOURCE = "source-id: s\nrelay-dir: relay\nfrom: {host: 127.0.0.1, port: %d, user: root}\n"
TASK = """name: app
task-mode: %s
meta-schema: meta_%s
target-database: {host: 127.0.0.1, port: %d, user: root}
mysql-instances:
  - {source-id: s, block-allow-list: own}
block-allow-list: {own: {do-dbs: [%s]}}
"""


def unshard(*arguments: str, folder: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run([*UNSHARD, *arguments], capture_output=True, text=True, cwd=folder, timeout=300, check=False)


def write_files(folder: Path, source: MariadbServer, target: MariadbServer, schema: str, mode: str = "all") -> None:
    (folder / "source.yaml").write_text(SOURCE % source.port)
    (folder / "task.yaml").write_text(TASK % (mode, schema, target.port, schema))


@pytest.mark.parametrize("arguments", [("--help",), ("run", "--help"), ("demo", "--help")])
def test_help_is_told_on_stdout(arguments: tuple[str, ...]) -> None:
    done = unshard(*arguments)
    assert (done.returncode, done.stderr) == (0, "")
    assert f"Usage: unshard {' '.join(arguments[:-1])}".rstrip() in done.stdout


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_shells_complete_verbs(shell: str) -> None:
    words = {"COMP_WORDS": "unshard c", "COMP_CWORD": "1", "_TYPER_COMPLETE_ARGS": "unshard c"}
    variables = {
        **os.environ,
        **words,
        "_UNSHARD_COMPLETE": f"complete_{shell}",
        "_TYPER_COMPLETE_FISH_ACTION": "get-args",
    }
    done = subprocess.run(UNSHARD, capture_output=True, text=True, env=variables, timeout=300, check=False)
    assert "ctl" in done.stdout, done.stderr
    assert "--install-completion" in unshard("--help").stdout


@pytest.mark.parametrize(
    "arguments",
    [(), ("run",), ("run", "task.yaml"), ("walk",), ("run", "task.yaml", "--source"), ("demo", "--rows", "many")],
    ids=" ".join,
)
def test_wrong_use_is_exit_code_2(arguments: tuple[str, ...]) -> None:
    done = unshard(*arguments)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr


def test_an_unreadable_task_file_is_told_without_a_traceback(tmp_path: Path) -> None:
    done = unshard("run", "no-such.yaml", "-s", "s.yaml", folder=tmp_path)
    assert done.returncode == 1
    assert unstamped(done.stderr).startswith("CONFIG-002")
    assert "no-such.yaml" in done.stderr
    assert "what to do:" in done.stderr
    assert "Traceback" not in done.stdout + done.stderr


def test_every_problem_of_a_file_is_told_with_its_line(tmp_path: Path) -> None:
    (tmp_path / "task.yaml").write_text("name: t\ntask-mode: sideways\nnonsense: 1\n")
    done = unshard("run", "task.yaml", "-s", "s.yaml", folder=tmp_path)
    assert done.returncode == 1
    assert unstamped(done.stderr).startswith("CONFIG-001")
    for word in ("task-mode", "nonsense", "target-database", "mysql-instances"):
        assert word in done.stderr
    assert "Traceback" not in done.stderr
    assert done.stdout == ""


def test_a_source_file_that_the_task_does_not_name_is_refused(tmp_path: Path) -> None:
    (tmp_path / "source.yaml").write_text((SOURCE % 1).replace("source-id: s", "source-id: other"))
    (tmp_path / "task.yaml").write_text(TASK % ("all", "x", 1, "x"))
    done = unshard("run", "task.yaml", "-s", "source.yaml", folder=tmp_path)
    assert done.returncode == 1
    assert unstamped(done.stderr).startswith("CONFIG-005")


@pytest.mark.spark
def test_a_server_that_is_down_is_an_error_with_its_address(tmp_path: Path) -> None:
    (tmp_path / "source.yaml").write_text(SOURCE % 1)
    (tmp_path / "task.yaml").write_text(TASK % ("all", "x", 1, "x"))
    done = unshard("run", "task.yaml", "-s", "source.yaml", "--json-status", folder=tmp_path)
    assert done.returncode == 1
    assert "127.0.0.1:1 as root" in done.stderr
    last = json.loads(done.stdout.splitlines()[-1])
    assert (last["state"], last["exit_code"], last["error"]["code"]) == ("failed", 1, "TARGET-001")
    assert "Traceback" not in done.stderr
    asked = unshard("ctl", "query-status", folder=tmp_path)
    assert asked.returncode == 1
    assert asked.stderr.startswith("CLUSTER-098")
    assert "the run of task app began at" in asked.stderr
    assert "127.0.0.1:1 as root" in asked.stderr


@pytest.mark.scenarios
@pytest.mark.server
@pytest.mark.spark
def test_a_full_copy_that_forgets_an_earlier_one_ends_by_itself_with_0(
    tmp_path: Path, source_server: MariadbServer, target_server: MariadbServer, schema: str
) -> None:
    source_server.run(
        f"CREATE DATABASE {schema}",
        f"CREATE TABLE {schema}.t (id INT PRIMARY KEY)",
        f"INSERT INTO {schema}.t VALUES (7)",
    )
    write_files(tmp_path, source_server, target_server, schema, "full")
    with session(target_server.endpoint, "target") as connection:
        earlier = LoadTables(f"meta_{schema}", "app", "s")
        earlier.create(connection)
        earlier.write_status(connection, FINISHED)
    done = unshard("run", "task.yaml", "-s", "source.yaml", "--remove-meta", "--json-status", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    lines = done.stderr.splitlines()
    assert unstamped(lines[-1]) == "finished"
    assert all(re.match(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ (INFO|WARN) +[^\x00-\x1f]+$", line) for line in lines)
    first, *_, last = map(json.loads, done.stdout.splitlines())
    assert (first["version"], first["task"], first["state"]) == (1, "app", "starting")
    assert (last["state"], last["exit_code"], last["error"]) == ("finished", 0, None)
    assert [(one["source"], one["unit"]) for one in last["sources"]] == [("s", "finished")]
    assert target_server.query(f"SELECT id FROM {schema}.t") == [(7,)]


@pytest.mark.scenarios
@pytest.mark.server
@pytest.mark.spark
def test_a_full_copy_that_is_forgotten_is_made_again_from_a_new_dump(
    tmp_path: Path, source_server: MariadbServer, target_server: MariadbServer, schema: str
) -> None:
    """Also where the dump of the copy before is kept; the user has emptied the table meanwhile."""
    name = TableName(schema, "t")
    source_server.run(f"CREATE DATABASE {schema}", f"CREATE TABLE {name} (id INT PRIMARY KEY)")
    source_server.run(f"INSERT INTO {name} VALUES (7)")
    write_files(tmp_path, source_server, target_server, schema, "full")
    with (tmp_path / "task.yaml").open("a") as task:
        task.write("clean-dump-file: false\n")
    command = ("run", "task.yaml", "-s", "source.yaml")
    done = unshard(*command, folder=tmp_path)
    assert done.returncode == 0, done.stderr
    source_server.run(f"INSERT INTO {name} VALUES (8)")
    target_server.run(f"TRUNCATE TABLE {name}")
    done = unshard(*command, "--remove-meta", folder=tmp_path)
    assert done.returncode == 0, done.stderr
    assert "remove-meta: the dump in " in done.stdout
    assert target_server.query(f"SELECT id FROM {name} ORDER BY id") == [(7,), (8,)]


@pytest.mark.server
@pytest.mark.spark
def test_a_reset_tells_what_it_drops_and_does_nothing_without_a_yes(
    tmp_path: Path, source_server: MariadbServer, target_server: MariadbServer, schema: str
) -> None:
    name = TableName(schema, "t")
    target_server.run(f"CREATE DATABASE {schema}", f"CREATE TABLE {name} (id INT PRIMARY KEY)")
    target_server.run(f"INSERT INTO {name} VALUES (7)", f"CREATE DATABASE meta_{schema}")
    write_files(tmp_path, source_server, target_server, schema, "full")
    with session(target_server.endpoint, "target") as connection:
        filled = FilledTables(f"meta_{schema}", "app")
        filled.create(connection)
        filled.claim(connection, "s", [name], merges=True)
        filled.note_made(connection, name)
    done = unshard("run", "task.yaml", "-s", "source.yaml", "--reset", folder=tmp_path)
    assert done.returncode == 1
    assert "Traceback" not in done.stderr
    assert f"reset: drops {name} (1 row), which this task has made" in done.stdout
    assert target_server.query(f"SELECT id FROM {name}") == [(7,)]


@pytest.mark.scenarios
@pytest.mark.server
@pytest.mark.spark
@pytest.mark.parametrize(
    ("line_before", "number"),
    [("starting Spark", signal.SIGINT), ("starting Spark", signal.SIGTERM), ("s  sync", signal.SIGTERM)],
)
def test_a_signal_to_all_of_its_processes_ends_it_with_0_from_the_first_line_on(
    tmp_path: Path,
    source_server: MariadbServer,
    target_server: MariadbServer,
    schema: str,
    line_before: str,
    number: signal.Signals,
) -> None:
    source_server.run(f"CREATE DATABASE {schema}", f"CREATE TABLE {schema}.t (id INT PRIMARY KEY)")
    write_files(tmp_path, source_server, target_server, schema)
    command = [*UNSHARD, "run", "task.yaml", "-s", "source.yaml"]
    child = subprocess.Popen(
        command, cwd=tmp_path, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, start_new_session=True
    )
    try:
        assert child.stdout is not None
        said = []
        for line in child.stdout:
            said.append(line)
            if unstamped(line).startswith(line_before):
                break
        os.killpg(child.pid, number)
        rest = child.stdout.read()
        assert child.wait(90) == 0, "".join(said) + rest
        assert unstamped(rest.splitlines()[-1]) == "stopped; the same command goes on from here"
        logs = [path.read_text() for path in tmp_path.glob("*.log") if not path.name.endswith(".spark.log")]
        assert logs
        assert "Traceback" not in "".join([*logs, rest])
    finally:
        child.kill()
        child.wait()
