"""A throwaway Spark standalone cluster with a Spark Connect server, from the pyspark package, on loopback only.

Master, workers and server are separate processes, as in production. They and their executors end with the process that
started them.
"""

from __future__ import annotations

import os
import re
import shutil
import signal
import tempfile
import time
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from importlib.util import find_spec
from pathlib import Path
from types import TracebackType
from typing import Self

from unshard.testing.guard import GuardedProcess

BOOT_SECONDS = 60.0
_PACKAGE = find_spec("pyspark")
assert _PACKAGE is not None
assert _PACKAGE.origin is not None
SPARK_HOME = Path(_PACKAGE.origin).parent.resolve()
_SMALL = "-XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Djava.net.preferIPv4Stack=true"
_ENVIRONMENT = {
    "SPARK_HOME": str(SPARK_HOME),
    "SPARK_LOCAL_IP": "127.0.0.1",
    "SPARK_SCALA_VERSION": next((SPARK_HOME / "jars").glob("spark-core_*")).name.split("_")[1].split("-")[0],
}
"""The variables that Spark's start scripts set. The executors' launcher takes the Scala version from them."""
_MASTER_READY = re.compile(r"Starting Spark master at (spark://\S+)")
_WORKER_READY = re.compile(r"Successfully registered with master")
_CONNECT_READY = re.compile(r"Spark Connect server started at: \S*?:(\d+)$", re.MULTILINE)


class SparkBootError(RuntimeError):
    """Raised where a process of the cluster did not start. The text ends with the last lines of its log."""


class SparkProcess:
    """One process of the Spark cluster, with its output in `log`.

    `ready` is the pattern in the output that shows the process is ready; `told` is the match, such as an address.
    """

    def __init__(self, folder: Path, name: str, command: Sequence[str], ready: re.Pattern[str]) -> None:
        self.log = folder / f"{name}.log"
        words = ["env", *(f"{key}={text}" for key, text in _ENVIRONMENT.items()), f"SPARK_LOCAL_DIRS={folder / name}"]
        line = 'log=$1; shift; exec "$@" >"$log" 2>&1'
        self._process = GuardedProcess(["/bin/sh", "-c", line, name, str(self.log), *words, *command], folder)
        self.told = self._wait(ready)

    def _wait(self, ready: re.Pattern[str]) -> str:
        deadline = time.monotonic() + BOOT_SECONDS
        while time.monotonic() < deadline:
            found = ready.search(self.text)
            if found is not None:
                return found[found.re.groups]
            if self._process.ended(0.05):
                break
        self.end()
        raise SparkBootError(f"{' '.join(self.text.splitlines(keepends=True)[-20:])}")

    @property
    def pid(self) -> int:
        """Id of the process."""
        return self._process.pid

    @property
    def text(self) -> str:
        """The output so far."""
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    def end(self) -> None:
        """Send SIGKILL; executors end with their worker. Idempotent."""
        self._process.signal(signal.SIGKILL)
        self._process.release()

    def signal(self, number: signal.Signals) -> None:
        """Send a signal to the process."""
        self._process.signal(number)


class SparkCluster:
    """A Spark master and workers, with `slots` tasks each for every application.

    As a context manager it ends all processes that it runs. `conf` are the settings that keep an application small. All
    JVMs get `java_options` too.
    """

    def __init__(self, workers: int = 2, slots: int = 1, java_options: str = "") -> None:
        self._java_options = f"{_SMALL} {java_options}"
        self.folder = Path(tempfile.mkdtemp(prefix="unshard-spark-"))
        self._stack = ExitStack()
        self._stack.callback(shutil.rmtree, self.folder, ignore_errors=True)
        self.conf: Mapping[str, str] = {
            "spark.cores.max": str(workers * slots),
            "spark.executor.cores": str(slots),
            "spark.executor.memory": "512m",
            "spark.executor.extraJavaOptions": self._java_options,
        }
        try:
            self.master = self._started("master", [*self._java("master.Master"), "--webui-port", "0"], _MASTER_READY)
            self.url = self.master.told
            room = ["--webui-port", "0", "--cores", str(8 * slots), "--memory", "8g"]
            with ThreadPoolExecutor() as threads:
                self.workers = list(threads.map(lambda number: self._worker(number, room), range(workers)))
        except BaseException:
            self.close()
            raise

    def _worker(self, number: int, room: Sequence[str]) -> SparkProcess:
        words = [*self._java("worker.Worker"), *room, "--work-dir", str(self.work / str(number)), self.url]
        return self._started(f"worker-{number}", words, _WORKER_READY)

    @property
    def work(self) -> Path:
        """Working folder of the executors.

        Their stdout and stderr are in a folder for each worker, application and executor.
        """
        return self.folder / "work"

    def connect_server(self, conf: Mapping[str, str] | None = None) -> SparkProcess:
        """Start a Spark Connect server as an application of this cluster. It ends with the cluster. `told` is its port.

        Its executors start with its first job.
        """
        own = {
            **self.conf,
            "spark.connect.grpc.binding.address": "127.0.0.1",
            "spark.connect.grpc.binding.port": "0",
            "spark.driver.host": "127.0.0.1",
            "spark.driver.memory": "768m",
            "spark.driver.extraJavaOptions": self._java_options,
            "spark.ui.port": "0",
            "spark.sql.warehouse.dir": str(self.folder / "warehouse"),
            **(conf or {}),
        }
        words = [str(SPARK_HOME / "bin" / "spark-submit"), "--master", self.url]
        words += [word for name, text in own.items() for word in ("--conf", f"{name}={text}")]
        words += ["--class", "org.apache.spark.sql.connect.service.SparkConnectServer", "spark-internal"]
        return self._started("connect", words, _CONNECT_READY)

    def _java(self, name: str) -> list[str]:
        classes = f"{SPARK_HOME}/conf{os.pathsep}{SPARK_HOME}/jars/*"
        words = ["java", *self._java_options.split(), "-Xmx256m", "-cp", classes]
        return [*words, f"org.apache.spark.deploy.{name}", "--host", "127.0.0.1", "--port", "0"]

    def _started(self, name: str, words: Sequence[str], ready: re.Pattern[str]) -> SparkProcess:
        process = SparkProcess(self.folder, name, words, ready)
        self._stack.callback(process.end)
        return process

    def close(self) -> None:
        """End everything. Idempotent."""
        self._stack.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()
