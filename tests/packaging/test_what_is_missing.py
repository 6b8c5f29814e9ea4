"""Where something that Unshard needs is not installed, one sentence says what, and how to install it."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from unshard.errors import EngineError
from unshard.spark.address import check_java

SOURCE = "source-id: s\nfrom: {host: 127.0.0.1, port: 1, user: root}\n"
TASK = """name: app
task-mode: full
target-database: {host: 127.0.0.1, port: 1, user: root}
mysql-instances: [{source-id: s}]
"""


def unshard(folder: Path, *words: str, **variables: str) -> subprocess.CompletedProcess[str]:
    kept = {name: text for name, text in os.environ.items() if name != "JAVA_HOME"}
    return subprocess.run(
        [sys.executable, "-m", "unshard", *words],
        cwd=folder,
        env={**kept, **variables},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def run(tmp_path: Path) -> list[str]:
    (tmp_path / "source.yaml").write_text(SOURCE)
    (tmp_path / "task.yaml").write_text(TASK)
    return ["run", "task.yaml", "--source", "source.yaml"]


def test_a_run_without_java_says_so_before_it_asks_a_server(tmp_path: Path, run: list[str]) -> None:
    done = unshard(tmp_path, *run, PATH=str(tmp_path))
    assert done.returncode == 1
    assert "ENGINE-012: Java is not installed" in done.stderr
    assert "apt-get install" in done.stderr
    assert "Traceback" not in done.stderr
    assert "TARGET-001" not in done.stderr


def test_a_run_needs_no_program_but_java(tmp_path: Path, run: list[str]) -> None:
    java = tmp_path / "java"
    java.write_text("")
    java.chmod(0o755)
    done = unshard(tmp_path, *run, PATH=str(tmp_path))
    assert "TARGET-001" in done.stderr, "it came as far as the servers"


@pytest.mark.parametrize("library", ["libmariadb.so.3", "libmysqlclient.so.21"])
def test_a_client_library_that_is_missing_is_named_with_its_package(
    library: str, tmp_path: Path, run: list[str]
) -> None:
    stub = tmp_path / "stubs" / "MySQLdb"
    stub.mkdir(parents=True)
    reason = f"{library}: cannot open shared object file: No such file or directory"
    (stub / "__init__.py").write_text(f"raise ImportError({reason!r})")
    done = unshard(tmp_path, *run, PYTHONPATH=str(stub.parent))
    assert done.returncode == 1
    told = done.stderr.splitlines()
    assert len(told) == 1, done.stderr
    assert told[0].startswith(f"The library {library} is not installed"), done.stderr
    assert "apt-get install lib" in told[0]


@pytest.mark.parametrize("home", ["", "/nowhere"])
def test_a_spark_connect_server_needs_no_java_here(home: str, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.setenv("JAVA_HOME", home)
    check_java("sc://10.0.0.1")
    with pytest.raises(EngineError, match="ENGINE-012") as raised:
        check_java("local[2]")
    assert ("/nowhere" in raised.value.cause) == bool(home)
