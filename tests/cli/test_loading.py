"""What loads at the start of a process is left out of garbage collections, and a Ctrl-C meanwhile is no error."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

FILES = {
    "task.yaml": "name: t\ntask-mode: all\ntarget-database: {host: h, port: 1, user: u}\n"
    "mysql-instances: [{source-id: s}]\n",
    "source.yaml": "source-id: s\nfrom: {host: h, port: 1, user: u}\n",
}
PROGRAM = """
import gc, signal
from unshard.cli.loading import loading
heeds = signal.getsignal(signal.SIGINT)
with loading():
    assert not gc.isenabled()
    import decimal, http.client
    modules = [decimal.__dict__, http.client.__dict__]
assert gc.isenabled()
collected = {id(one) for one in gc.get_objects()}
assert not collected.intersection(map(id, modules))
later = [[]]
assert id(later) in {id(one) for one in gc.get_objects()}
assert signal.getsignal(signal.SIGINT) is heeds
signal.signal(signal.SIGINT, signal.SIG_IGN)  # as a shell has it for what runs in the background
with loading():
    signal.raise_signal(signal.SIGINT)
"""


def test_what_is_loaded_is_in_no_collection_and_what_comes_later_is() -> None:
    subprocess.run([sys.executable, "-c", PROGRAM], check=True)


@pytest.mark.parametrize(("library", "words"), [("typer", ()), ("uvicorn", ("run", "task.yaml", "-s", "source.yaml"))])
def test_ctrl_c_meanwhile_ends_it_without_a_word(tmp_path: Path, library: str, words: tuple[str, ...]) -> None:
    (tmp_path / f"{library}.py").write_text("import os, signal\nos.kill(os.getpid(), signal.SIGINT)\n")
    for name, text in FILES.items():
        (tmp_path / name).write_text(text)
    done = subprocess.run(
        [sys.executable, "-m", "unshard", *words],
        capture_output=True,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])},
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),  # a shell has it ignored in the background
        check=False,
    )
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, b"", b"")


HEAVY = "MySQLdb cryptography fastapi httpx numpy pyarrow pymysql pyspark rich sqlalchemy structlog uvicorn"
LOADED = f"""
import sys
from unshard.cli.app import app
try:
    app(sys.argv[1:])
except SystemExit as end:
    print(end.code, *sorted({set(HEAVY.split())!r} & set(sys.modules)))
"""


@pytest.mark.parametrize("words", [("run",), ("ctl", "check-task"), ("status",)], ids=" ".join)
def test_all_mistakes_in_all_files_are_told_before_anything_else_is_loaded(
    tmp_path: Path, words: tuple[str, ...]
) -> None:
    (tmp_path / "task.yaml").write_text(FILES["task.yaml"].replace("all", "most") + "nonsense: 1\n")
    (tmp_path / "source.yaml").write_text(FILES["source.yaml"].replace("port: 1", "port: first"))
    files = ("task.yaml", "-s", "source.yaml", "-s", "gone.yaml")
    done = subprocess.run(
        [sys.executable, "-c", LOADED, *words, *files], capture_output=True, text=True, cwd=tmp_path, check=True
    )
    assert done.stdout.split() == ["1"]
    for word in ("task-mode", "nonsense", "from.port", "gone.yaml", "CONFIG-002"):
        assert word in done.stderr
    assert done.stderr.count("CONFIG-001") == 2
    assert "Traceback" not in done.stderr
