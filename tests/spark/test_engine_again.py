"""A worker's Spark session: one for all of its subtasks, and a new one where Spark's JVM has died."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import secrets
import sys
from pathlib import Path
from unshard.config.task import SparkConfig
from unshard.errors import ClusterError, EngineError
from unshard.spark.jobs import run_tasks
from unshard.worker.engine import Engine


def told_of(file):
    try:
        return file.read_bytes()
    except OSError:  # it has ended meanwhile
        return b""


engine = Engine(Path(sys.argv[1]))
secret, mark = "spark.hadoop.fs.s3a.secret.key", secrets.token_hex()
config = SparkConfig(master="local[1]", conf={secret: mark})
session = engine.session(config)
assert session.sparkContext.getConf().get(secret) == mark
for file in Path("/proc").glob("[0-9]*/cmdline"):
    assert mark.encode() not in told_of(file), told_of(file)
assert engine.session(config) is session
try:
    engine.session(SparkConfig(master="local[1]", conf={"spark.ssl.keyPassword": "abc"}))
except ClusterError as error:
    assert "keyPassword" in str(error) and "abc" not in str(error), error
if sys.argv[2] == "killed":
    session.sparkContext._gateway.proc.kill()
    session.sparkContext._gateway.proc.wait()
else:
    session.sparkContext._jsc.sc().stop()
try:
    run_tasks(session, [b"a"], bytes.upper)
except EngineError as error:
    print(error.code)
again = engine.session(config)
assert again is not session
print(run_tasks(again, [b"a"], bytes.upper))
engine.close()
"""


@pytest.mark.faults
@pytest.mark.spark
@pytest.mark.parametrize("end", ["killed", "stopped"])
def test_a_session_that_died_is_made_anew(end: str, tmp_path: Path) -> None:
    """Stopped: Spark has ended its context, as after a fatal error, and its JVM lives on.

    In a folder and a locale that Java's own reading of names does not go together with.
    """
    folder = tmp_path / "Umzug 一 ü"
    folder.mkdir()
    command = [sys.executable, "-c", PROGRAM, str(folder / "spark.log"), end]
    environment = os.environ | {"LC_ALL": "C"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder, env=environment)
    assert done.stdout.splitlines() == ["ENGINE-003", "[b'A']"], done.stderr


AHEAD = """
import logging, sys, time
from pathlib import Path
from unshard.config.task import SparkConfig
from unshard.spark.jobs import run_tasks
from unshard.worker.engine import Engine

engine = Engine(Path(sys.argv[1]))
config = SparkConfig(master="local[1]")
engine.begin(config)
while engine._session is None:
    time.sleep(0.05)
first = engine._session
assert engine.session(config) is first
engine.begin(SparkConfig(master="local[2]"))
assert engine.session(config) is first
engine.close()
other = Engine(Path(sys.argv[1]))
other.begin(config)
while other._session is None:
    time.sleep(0.05)
wanted = SparkConfig(master="local[1]", conf={"spark.app.name": "another"})
print(run_tasks(other.session(wanted), [b"a"], bytes.upper), other.session(wanted).conf.get("spark.app.name"))
other.close()
"""


@pytest.mark.scenarios
@pytest.mark.spark
def test_a_session_that_was_started_ahead_is_the_task_s_and_makes_way_for_another(tmp_path: Path) -> None:
    command = [sys.executable, "-c", AHEAD, str(tmp_path / "spark.log")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines()[-1:] == ["[b'A'] another"], done.stderr


LAZY = """
import sys, threading, time
from pathlib import Path
from unshard.config.task import SparkConfig
from unshard.errors import ClusterError, EngineError
from unshard.worker import engine as module
from unshard.worker.engine import Engine

stop, lines, failures = threading.Event(), [], []
engine = Engine(Path(sys.argv[1]), stop, lines.append, failures.append)
config = SparkConfig(master="local[2]")
lazy = engine.lazy(config)
lazy.interrupt("no job")
print(lazy.slots, lazy.local, lines)
try:
    engine.lazy(SparkConfig(master="local[1]"))
except ClusterError as error:
    print(error.code)
run = lazy.tasks("upper")
print(run([b"a"], bytes.upper), lines, engine.lazy(config).get() is lazy.get())
lazy.get().sparkContext._gateway.proc.kill()
lazy.get().sparkContext._gateway.proc.wait()
for _ in range(2):
    try:
        run([b"a"], bytes.upper)
    except EngineError as error:
        print(error.code)
stop.set()
try:
    engine.lazy(config).get()
except EngineError as error:
    print("stopping", error.code, lines)
engine.close()

module.IDLE_SECONDS = 0.1
idle = Engine(Path(sys.argv[1]), threading.Event(), lines.append, failures.append)
idle.lazy(SparkConfig(master="local[1]", conf={"spark.driver.memory": "no size"}))
while not failures:
    time.sleep(0.05)
print(failures[0].code)
idle.close()
"""


@pytest.mark.scenarios
@pytest.mark.spark
def test_a_session_starts_with_the_first_job_or_when_it_was_idle_for_long(tmp_path: Path) -> None:
    command = [sys.executable, "-c", LAZY, str(tmp_path / "spark.log")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.stdout.splitlines() == [
        "2 True []",
        "CLUSTER-020",
        "[b'A'] ['starting Spark'] True",
        "ENGINE-003",
        "ENGINE-003",
        "stopping ENGINE-013 ['starting Spark']",
        "ENGINE-001",
    ], done.stderr
