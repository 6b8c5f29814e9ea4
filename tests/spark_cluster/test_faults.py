"""What goes wrong between here and a cluster's executors is told, each by an error that says what to do."""

from __future__ import annotations

import sys
import tarfile
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import AbstractContextManager
from pathlib import Path
from threading import Thread
from typing import Any

import pytest

from support.waiting import wait_until
from unshard.errors import EngineError
from unshard.spark import session as session_module
from unshard.spark import survey as survey_module
from unshard.spark.folders import reading, sees, writing
from unshard.spark.jobs import Task, run_tasks
from unshard.spark.lazy import started
from unshard.spark.session import slots, spark_session
from unshard.testing.proxy import FaultProxy
from unshard.testing.spark_cluster import SparkProcess

pytestmark = [pytest.mark.spark, pytest.mark.cluster]
HIDDEN = Path("/proc/self/cwd/hidden")


@pytest.fixture(scope="module")
def url(connect_server: SparkProcess) -> str:
    return f"sc://127.0.0.1:{connect_server.told}"


@pytest.fixture(scope="module")
def remote(url: str, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    with spark_session(url, {}, tmp_path_factory.mktemp("spark") / "spark.log") as session:
        yield session


def slow_task(folder: Path) -> Task:
    """A task that executors take by value: they don't have the tests. Begun, it waits until it may go on.

    It makes the file `begun` in the folder, and waits for `go-on`.
    """
    begun, go_on = str(folder / "begun"), str(folder / "go-on")

    def slow(payload: bytes) -> bytes:
        from pathlib import Path
        from threading import Event

        Path(begun).touch()
        for _ in range(2400):  # the executor is not blocked for ever where the test has failed
            if Path(go_on).exists():
                break
            Event().wait(0.05)
        return payload.upper()

    return slow


def once_begun(folder: Path, act: Callable[[], None]) -> Thread:
    """Act as soon as a slow task has begun, in a thread."""

    def wait() -> None:
        wait_until((folder / "begun").exists, "a task has begun")
        act()

    thread = Thread(target=wait)
    thread.start()
    return thread


def opening(url: str, folder: Path, **more: Any) -> AbstractContextManager[Any]:
    return spark_session(url, {}, folder / "spark.log", **more)


def test_slots_are_those_of_the_executors(remote: Any) -> None:
    assert slots(remote) == 2


def test_folders_that_executors_do_not_see(remote: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    assert not sees(remote, HIDDEN)
    assert sees(remote, tmp_path / "shared")
    ran: list[bytes] = []

    def run(payloads: Sequence[bytes], task: Any, *, barrier: bool = False) -> list[bytes]:
        ran.extend(payloads)
        return list(payloads)

    (tmp_path / "hidden" / "file").write_text("x")
    for way in (writing, reading):
        with pytest.raises(EngineError, match=r"ENGINE-008 \[source s1, file /proc/self/cwd/hidden\]") as caught:
            way(run, started(remote), HIDDEN, "s1")([b"1"], bytes.upper)
        assert "`dir` under `loaders`" in str(caught.value)
        way(run, started(remote), tmp_path / "shared", "s1")([b"2"], bytes.upper)
    assert ran == [b"2", b"2"]
    assert [path.name for path in (tmp_path / "hidden").iterdir()] == ["file"]
    assert list((tmp_path / "shared").iterdir()) == []


def test_an_interpreter_that_is_not_there(url: str, tmp_path: Path) -> None:
    with pytest.raises(EngineError, match="ENGINE-006") as caught, opening(url, tmp_path, python="/nowhere/python"):
        pass
    assert "/nowhere/python" in str(caught.value)


def test_a_packed_environment_with_another_release(url: str, tmp_path: Path) -> None:
    """The archive is unpacked where the executors run, and its interpreter runs the tasks."""
    python = tmp_path / "bin" / "python"
    python.parent.mkdir()
    python.write_text(
        '#!/bin/sh\nexport PYTHONPATH="$(cd "$(dirname "$0")/.." && pwd)/site:$PYTHONPATH"\n'
        f'exec {sys.executable} "$@"\n'
    )
    python.chmod(0o755)
    other = tmp_path / "site" / "unshard" / "__init__.py"
    other.parent.mkdir(parents=True)
    other.write_text('"""Another release."""\n')
    packed = tmp_path / "other.tar.gz"
    with tarfile.open(packed, "w:gz") as archive:
        archive.add(tmp_path / "bin", "bin")
        archive.add(tmp_path / "site", "site")
    with (
        pytest.raises(EngineError, match=r"ENGINE-005.*unshard is [0-9a-f]{12} there and [0-9a-f]{12} here"),
        opening(url, tmp_path, python="./other/bin/python", archives=[f"{packed}#other"]),
    ):
        pass


def test_no_executor_in_time(url: str, remote: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All that there are have other work, which is as if none had come."""
    monkeypatch.setattr(survey_module, "WAIT_SECONDS", 0.02)
    with ThreadPoolExecutor(1) as pool:
        work = pool.submit(run_tasks, remote, [b"a"] * slots(remote), slow_task(tmp_path))
        wait_until((tmp_path / "begun").exists, "a task has begun")
        try:
            with pytest.raises(EngineError, match="ENGINE-007"), opening(url, tmp_path):
                pass
        finally:
            (tmp_path / "go-on").touch()
        assert work.result() == [b"A"] * slots(remote)


def test_a_connection_that_is_cut_is_taken_up_again(connect_server: SparkProcess, tmp_path: Path) -> None:
    with (
        FaultProxy("127.0.0.1", int(connect_server.told)) as proxy,
        opening(f"sc://127.0.0.1:{proxy.port}", tmp_path) as session,
    ):

        def cut() -> None:
            proxy.cut()
            (tmp_path / "go-on").touch()

        cutting = once_begun(tmp_path, cut)
        assert run_tasks(session, [b"a", b"b"], slow_task(tmp_path)) == [b"A", b"B"]
        cutting.join()


@pytest.mark.filterwarnings("ignore:.*RETRIES_EXCEEDED")
def test_a_server_that_stays_away(
    connect_server: SparkProcess, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(session_module, "RECONNECTS", 2)
    with (
        FaultProxy("127.0.0.1", int(connect_server.told)) as proxy,
        opening(f"sc://127.0.0.1:{proxy.port}/;user_id=u", tmp_path) as session,
    ):
        once_begun(tmp_path, proxy.refuse)
        with pytest.raises(EngineError, match="ENGINE-009") as caught:
            run_tasks(session, [b"a"], slow_task(tmp_path))
        (tmp_path / "go-on").touch()  # the server still has the task
        assert "start the same command again" in str(caught.value)


def test_a_session_that_the_server_has_ended(remote: Any) -> None:
    remote.client.release_session()
    with pytest.raises(EngineError, match="ENGINE-009"):
        run_tasks(remote, [b"a"], bytes.upper)
