"""The survey of a session's executors: how many tasks they run at a time, and whether their versions are those here."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Callable, Iterator
from threading import Event, Thread
from typing import Any

from unshard.errors import EngineError
from unshard.spark.jobs import failure, interrupt, tagged

WAIT_SECONDS = 120.0
"""How long the first executor may take to come: on YARN and Kubernetes it is started for us."""

_ROUNDS = 5
_PAUSE_SECONDS = 1.0
_AGAIN_SECONDS = 1.0
_TAG = "unshard-survey"
_NO_PYTHON = re.compile(
    r"Cannot run program|Python in worker has different version|PYTHON_VERSION_MISMATCH|ModuleNotFoundError|ImportError"
    r"|PACKAGE_NOT_INSTALLED"
)


def survey(session: Any) -> int:
    """Return how many tasks the session's executors run at a time. Starts them, and compares their versions.

    Raises EngineError: ENGINE-005 for versions that differ, 006 if no task can run because an interpreter or a package
    is missing, 007 if no executor came, otherwise the error that `failure` returns.
    """
    here = json.loads(_versions()())
    count = 0
    for attempt in range(_ROUNDS):
        found = _ask(session)
        for there in found:
            _check_same(here, there)
        if len(found) == count and attempt:
            break
        count = len(found)
        time.sleep(_PAUSE_SECONDS if attempt else 0)
    return count


def _check_same(here: dict[str, str], there: dict[str, str]) -> None:
    names = [name for name in here if name != "host" and here[name] != there[name]]
    if names:
        told = "; ".join(f"{name} is {there[name]} there and {here[name]} here" for name in names)
        raise EngineError("ENGINE-005", cause=f"seen on {there['host']}", values={"differences": told})


def _ask(session: Any) -> list[dict[str, str]]:
    """Return one answer for each task that runs at a time: a range has as many partitions by default."""
    look = _versions()

    def body(batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow

        for _ in batches:
            pass
        yield pyarrow.RecordBatch.from_arrays([pyarrow.array([look()], pyarrow.string())], ["found"])

    begun, answered = time.monotonic(), Event()

    def give_up() -> None:
        patience = WAIT_SECONDS
        while not answered.wait(patience):
            interrupt(session, _TAG)  # has no effect on a query that has not reached the server yet, so repeat it
            patience = _AGAIN_SECONDS

    Thread(target=give_up, name="survey", daemon=True).start()
    try:
        with tagged(session, _TAG):
            found = session.range(0, 1 << 16).mapInArrow(body, "found string").toArrow()
        return [json.loads(text) for text in found.column("found").to_pylist()]
    except Exception as error:
        if time.monotonic() - begun >= WAIT_SECONDS:
            raise EngineError("ENGINE-007", values={"seconds": f"{WAIT_SECONDS:g}"}) from error
        named = [line.strip() for line in str(error).splitlines() if _NO_PYTHON.search(line)]
        if named:
            raise EngineError("ENGINE-006", cause=named[-1][:500]) from error
        raise failure(session, "survey", error) from error
    finally:
        answered.set()


def _versions() -> Callable[[], str]:
    """Return a function that returns this interpreter's versions as JSON.

    It runs on executors that may only have Spark. So it is sent by value and refers to nothing in this module. For
    Unshard it returns a digest, because a checkout may have changed without a new version.
    """

    def versions() -> str:
        import hashlib
        import importlib.util
        import json
        import platform
        import socket
        from importlib.metadata import PackageNotFoundError, version
        from pathlib import Path

        found = {"host": socket.gethostname(), "Python": platform.python_version()}
        for name in ("pyarrow", "numpy", "pyspark", "mysqlclient"):
            try:
                found[name] = version(name)
            except PackageNotFoundError:
                found[name] = "missing"
        spec = importlib.util.find_spec("unshard")
        if spec is None or spec.origin is None:
            found["unshard"] = "missing"
        else:
            digest = hashlib.sha256()
            folder = Path(spec.origin).parent
            for path in sorted(folder.rglob("*.py")):
                digest.update(path.relative_to(folder).as_posix().encode())
                digest.update(path.read_bytes())
            found["unshard"] = digest.hexdigest()[:12]
        return json.dumps(found)

    return versions
