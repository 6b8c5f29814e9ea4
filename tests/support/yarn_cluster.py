"""A throwaway YARN: a ResourceManager and a NodeManager of Hadoop as separate processes, on loopback only.

Their classes are Hadoop's own, of the jar for client tests that `tools/test-servers yarn` fetches; the rest of Hadoop
comes with the pyspark package. Both processes and all containers end with the process that started them.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import tempfile
import urllib.request
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Any, Self
from xml.sax.saxutils import escape

import psutil

from support.waiting import wait_until
from unshard.testing.cache import server_folder
from unshard.testing.guard import GuardedProcess
from unshard.testing.programs import MissingProgramError
from unshard.testing.spark_cluster import SPARK_HOME, SparkBootError
from unshard.testing.throwaway_server import reserved

_BOOT_SECONDS = 90.0
_SERVER = "org.apache.hadoop.yarn.server"
_RESOURCE_MANAGER = ("address", "scheduler.address", "resource-tracker.address", "admin.address", "webapp.address")
_NODE_MANAGER = ("address", "localizer.address", "webapp.address", "collector-service.address")
_PROCESSES = ("resourcemanager.ResourceManager", "nodemanager.NodeManager")
_JAVA = "-Xmx256m -XX:+UseSerialGC -XX:TieredStopAtLevel=1 -Djava.net.preferIPv4Stack=true"


class YarnCluster:
    """One ResourceManager and one NodeManager with room for `slots` executors.

    As a context manager it ends all that it runs. `conf` are Spark settings of a small application, `hadoop_conf` is
    the folder that HADOOP_CONF_DIR has to name. Raises MissingProgramError if the jars are not there.
    """

    def __init__(self, slots: int = 2) -> None:
        jars = server_folder("yarn")
        assert jars is not None, "tests are run in a checkout"
        if not jars.is_dir():
            raise MissingProgramError(f"YARN is not in {jars}: run tools/test-servers yarn")
        self.folder = Path(tempfile.mkdtemp(prefix="unshard-yarn-"))
        self._stack = ExitStack()
        self._stack.callback(shutil.rmtree, self.folder, ignore_errors=True)
        self._classes = os.pathsep.join((str(self.hadoop_conf), f"{jars}/*", f"{SPARK_HOME}/jars/*"))
        self.conf: Mapping[str, str] = {
            "spark.executor.instances": str(slots),
            "spark.executor.cores": "1",
            "spark.executor.memory": "512m",
            "spark.executor.extraJavaOptions": _JAVA.partition(" ")[2],
            "spark.yarn.am.memory": "512m",
            "spark.yarn.am.extraJavaOptions": _JAVA.partition(" ")[2],
            "spark.yarn.jars": f"local:{SPARK_HOME}/jars/*",
            "spark.yarn.stagingDir": str(self.folder / "staging"),
            "spark.driver.host": "127.0.0.1",
            "spark.driver.bindAddress": "127.0.0.1",
        }
        try:
            self._configure()
            self._processes = [self._start(f"{_SERVER}.{name}") for name in _PROCESSES]
            self._wait()
        except BaseException:
            self.close()
            raise

    @property
    def hadoop_conf(self) -> Path:
        return self.folder / "conf"

    @property
    def containers(self) -> list[psutil.Process]:
        """The processes of applications that run now: masters and executors, with their Python workers."""
        found = []
        for process in self._processes:
            found += psutil.Process(process.pid).children(recursive=True)
        return found

    def applications(self) -> list[dict[str, Any]]:
        """Return what the ResourceManager tells of each application: `name`, `state`, `finalStatus` and so on."""
        found = self._ask("apps")["apps"] or {}
        listed: list[dict[str, Any]] = found.get("app", [])
        return listed

    def _configure(self) -> None:
        self.hadoop_conf.mkdir()
        self.resource_manager = {name: self._address() for name in _RESOURCE_MANAGER}
        settings = {
            "fs.defaultFS": "file:///",
            **{f"yarn.resourcemanager.{name}": address for name, address in self.resource_manager.items()},
            **{f"yarn.nodemanager.{name}": self._address() for name in _NODE_MANAGER},
            "yarn.resourcemanager.hostname": "127.0.0.1",
            "yarn.resourcemanager.bind-host": "127.0.0.1",
            "yarn.nodemanager.hostname": "127.0.0.1",
            "yarn.nodemanager.bind-host": "127.0.0.1",
            "yarn.nodemanager.local-dirs": str(self.folder / "local"),
            "yarn.nodemanager.log-dirs": str(self.folder / "logs"),
            "yarn.nodemanager.resource.memory-mb": "8192",
            "yarn.nodemanager.resource.cpu-vcores": "8",
            "yarn.nodemanager.disk-health-checker.enable": "false",
            "yarn.nodemanager.pmem-check-enabled": "false",
            "yarn.nodemanager.vmem-check-enabled": "false",
            "yarn.scheduler.minimum-allocation-mb": "256",
            "yarn.scheduler.capacity.maximum-am-resource-percent": "1.0",
            "yarn.scheduler.capacity.root.queues": "default",
            "yarn.scheduler.capacity.root.default.capacity": "100",
        }
        listed = "".join(
            f"<property><name>{name}</name><value>{escape(text)}</value></property>\n"
            for name, text in settings.items()
        )
        for file in ("core-site.xml", "yarn-site.xml", "capacity-scheduler.xml"):
            (self.hadoop_conf / file).write_text(f"<configuration>\n{listed}</configuration>\n")

    def _address(self) -> str:
        place = reserved()
        self._stack.callback(place.close)
        return f"127.0.0.1:{place.getsockname()[1]}"

    def _start(self, name: str) -> GuardedProcess:
        log = self.folder / f"{name.rpartition('.')[2]}.log"
        words = ["java", *_JAVA.split(), "-cp", self._classes, name]
        line = 'log=$1; shift; exec "$@" >"$log" 2>&1'
        process = GuardedProcess(["/bin/sh", "-c", line, name, str(log), *words], self.folder)
        self._stack.callback(_end, process)
        return process

    def _wait(self) -> None:
        """Wait until the NodeManager has registered. Raises SparkBootError."""

        def logs() -> str:
            return "\n".join(path.read_text(errors="replace")[-2000:] for path in self.folder.glob("*.log"))

        def registered() -> bool:
            if any(process.ended() for process in self._processes):
                raise SparkBootError(f"YARN did not start:\n{logs()}")
            try:
                return bool(self._ask("metrics")["clusterMetrics"]["activeNodes"] == 1)
            except OSError:
                return False  # the ResourceManager does not listen yet

        wait_until(registered, "the NodeManager has registered", _BOOT_SECONDS, logs)

    def _ask(self, what: str) -> dict[str, Any]:
        address = f"http://{self.resource_manager['webapp.address']}/ws/v1/cluster/{what}"
        with urllib.request.urlopen(address, timeout=10) as answer:
            found: dict[str, Any] = json.load(answer)
        return found

    def close(self) -> None:
        """End everything. Idempotent."""
        self._stack.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()


def _end(process: GuardedProcess) -> None:
    """End a process of YARN and all that runs below it: a NodeManager leaves its containers running."""
    try:
        below = psutil.Process(process.pid).children(recursive=True)
    except psutil.NoSuchProcess:
        below = []
    process.signal(signal.SIGKILL)
    process.release()
    for one in below:
        try:
            one.kill()
        except psutil.NoSuchProcess:
            continue
