"""A throwaway cluster like one in production: masters with one store, workers with a folder each, all real processes.

Masters are reached through proxies, so that a master or a worker can be cut off. A user's commands go through `ctl`.
Everything ends with the process that started it.
"""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing, suppress
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from types import TracebackType
from typing import Any, Self

from unshard.api.heartbeat import Heartbeat
from unshard.api.verbs import ListMember, Request
from unshard.config.listener import LinkSecurity
from unshard.ctl.client import MasterClient
from unshard.errors import ClusterError
from unshard.testing.guard import GuardedProcess
from unshard.testing.proxy import FaultProxy
from unshard.web.links import HttpMasterLink

BOOT_SECONDS = 120.0
LEADER_SECONDS = 10.0
"""How long the answer to the question for the leader may take."""
_UNASKED = "CLUSTER-041"
"""The error if no master could be reached, or none leads at the moment.

No master was asked, so the request may be repeated.
"""

UNSHARD = [sys.executable, "-m", "unshard"]
_SERVES = re.compile(r'"listening"\] \[address=\S+?:(\d+)\].*serves at', re.DOTALL)


@dataclass(frozen=True, slots=True)
class CommandOutput:
    """The output of a command, with its exit code."""

    exit_code: int
    stdout: str
    stderr: str


class ClusterMember:
    """One process of the cluster, which can be killed, frozen and started again. Its output is in `log`."""

    def __init__(self, name: str, folder: Path, words: Callable[[], Sequence[str]]) -> None:
        self.name, self.folder, self._words = name, folder, words
        self.port = 0
        self._process: GuardedProcess | None = None
        folder.mkdir(parents=True)

    @property
    def log(self) -> Path:
        """File of the process's output, of all its starts."""
        return self.folder / "output.log"

    @property
    def text(self) -> str:
        """Output so far; "" before the first start."""
        return self.log.read_text(errors="replace") if self.log.exists() else ""

    @property
    def pid(self) -> int:
        """Id of the running process."""
        assert self._process is not None, f"{self.name} does not run"
        return self._process.pid

    @property
    def runs(self) -> bool:
        """True if the process runs. A frozen process runs."""
        return self._process is not None and not self._process.ended()

    def start(self, environment: Mapping[str, str] | None = None) -> None:
        """Start the process; returns once it serves. Raises RuntimeError with its output if it doesn't.

        `environment` applies to this start alone, as `UNSHARD_CRASH_AT` does.
        """
        self._release()
        known = len(self.text)
        given = [f"{key}={text}" for key, text in (environment or {}).items()]
        line = 'cd "$1"; shift; export UNSHARD_CRASH_PID=$$; exec "$@" >>output.log 2>&1'
        command = ["/bin/sh", "-c", line, self.name, str(self.folder), "env", *given, *UNSHARD, *self._words()]
        self._process = GuardedProcess(command, self.folder)
        deadline = time.monotonic() + BOOT_SECONDS
        while (found := _SERVES.search(self.text, known)) is None:
            if self._process.ended(0.05) or time.monotonic() > deadline:
                self.kill()
                raise RuntimeError(f"{self.name} did not come up:\n{self.text[known:]}")
        self.port = int(found[1])

    def kill(self) -> None:
        """Send SIGKILL. Idempotent. The process's JVM ends by itself, because its standard input is closed."""
        if self._process is not None:
            self._process.signal(signal.SIGKILL)
            self._release()

    def stop(self) -> None:
        """Send SIGTERM, as an init system does, and wait for the end."""
        assert self._process is not None
        self._process.signal(signal.SIGTERM)
        if not self._process.ended(BOOT_SECONDS):
            raise RuntimeError(f"{self.name} did not end:\n{self.text[-2000:]}")
        self._release()

    def freeze(self) -> None:
        """Stop the process with SIGSTOP: its connections stay open and it does not answer."""
        assert self._process is not None
        self._process.signal(signal.SIGSTOP)

    def wake(self) -> None:
        """Let a frozen process go on."""
        assert self._process is not None
        self._process.signal(signal.SIGCONT)

    def ended(self, seconds: float) -> bool:
        """Wait until the process has ended, at most `seconds`; return whether it has."""
        return self._process is None or self._process.ended(seconds)

    def _release(self) -> None:
        if self._process is not None:
            self._process.release()
            self._process = None


class MasterGate(FaultProxy):
    """The proxy in front of a master. `barred` are the ids of processes whose connections are refused."""

    def __init__(self) -> None:
        self.barred: frozenset[int] = frozenset()
        super().__init__("127.0.0.1", 1)

    def lets_in(self, port: int) -> bool:
        """Return whether a connection from that local port may pass: it is of no barred process."""
        return not any(port in _ports(pid) for pid in self.barred)


def _ports(pid: int) -> set[int]:
    """Return the local ports of a process's TCP connections, by proc(5)."""
    links = set()
    try:
        for one in Path(f"/proc/{pid}/fd").iterdir():
            with suppress(FileNotFoundError):  # closed just now
                links.add(os.readlink(one))
        lines = Path(f"/proc/{pid}/net/tcp").read_text().splitlines()[1:]
    except OSError:
        return set()
    fields = [line.split() for line in lines]
    return {int(one[1].partition(":")[2], 16) for one in fields if f"socket:[{one[9]}]" in links}


class ThrowawayCluster:
    """A cluster of master and worker processes for a test. As a context manager it starts and ends all processes.

    Args:
        store: the SQLAlchemy-like URL that all masters share.
        keys: settings in every process's file; `master`, `worker`: in the files of one kind of process.
        environments: the environments of single workers, at their first start.
        token: the token that `ctl` shows if none is given.

    `asked_first`: the master that `ctl` asks before the others; the first one if it is None. `of_master`: settings in
    each master's file, from its next start on.
    """

    def __init__(
        self,
        store: str,
        masters: int = 3,
        workers: int = 4,
        *,
        keys: Mapping[str, Any] | None = None,
        master: Mapping[str, Any] | None = None,
        worker: Mapping[str, Any] | None = None,
        environments: Mapping[str, Mapping[str, str]] | None = None,
        token: str = "",
    ) -> None:
        self.folder = Path(tempfile.mkdtemp(prefix="unshard-cluster-"))
        self._store, self._token, self._of_one = store, token, dict(environments or {})
        self._keys, self.of_master, self._of_worker = dict(keys or {}), dict(master or {}), dict(worker or {})
        self._stack = ExitStack()
        self._stack.callback(shutil.rmtree, self.folder, ignore_errors=True)
        self.asked_first: ClusterMember | None = None
        self.gates = [MasterGate() for _ in range(masters)]
        for gate in self.gates:
            self._stack.callback(gate.close)
        self.masters = [self._member(f"m{number + 1}", self._master_words(number)) for number in range(masters)]
        self.workers = [self._member(f"w{number + 1}", self._worker_words(number)) for number in range(workers)]

    def start(self) -> None:
        """Start all processes. Returns once all serve, and a master leads and knows all workers."""
        with ThreadPoolExecutor() as threads:
            serving = [threads.submit(self.start_master, number) for number in range(len(self.masters))]
            serving += [threads.submit(one.start, self._of_one.get(one.name)) for one in self.workers]
        for one in serving:
            one.result()
        deadline = time.monotonic() + BOOT_SECONDS
        while self._strangers():
            if time.monotonic() > deadline:
                raise RuntimeError(f"no leader knows {self._strangers()}")
            time.sleep(0.05)

    def _strangers(self) -> set[str]:
        """Return the workers that the leader has not heard of yet; all workers if no master leads."""
        try:
            told = self.asked_once(ListMember(worker=True))
        except ClusterError:
            told = {"members": []}
        known = {one["name"] for kind in told["members"] for one in kind.get("worker", {}).get("workers", ())}
        return {one.name for one in self.workers} - known

    def start_master(self, number: int) -> None:
        """Start a master, or start it again, and let its gate lead to its port."""
        self.masters[number].start()
        self.gates[number].lead_to("127.0.0.1", self.masters[number].port)

    def worker(self, name: str) -> ClusterMember:
        """Return the worker of that name."""
        return next(one for one in self.workers if one.name == name)

    def leader(self) -> ClusterMember:
        """Wait until a master leads, and return it."""
        deadline = time.monotonic() + BOOT_SECONDS
        while not (name := self.leads()):
            if time.monotonic() > deadline:
                raise RuntimeError("no master leads")
        return next(one for one in self.masters if one.name == name)

    def leads(self) -> str:
        """Return the name of the leading master, according to any master that answers; empty if none leads."""
        try:
            told = self.asked_once(ListMember(leader=True))
        except ClusterError:
            return ""
        return str(told["members"][0]["leader"]["name"]) if told["result"] else ""

    @property
    def addresses(self) -> str:
        """Addresses of the masters' gates, as a worker or ctl takes them; the master to be asked first comes first."""
        ways = sorted(zip(self.masters, self.gates, strict=True), key=lambda way: way[0] is not self.asked_first)
        return ",".join(f"127.0.0.1:{gate.port}" for _, gate in ways)

    def told(self, *words: str, given: str = "", token: str = "") -> CommandOutput:
        """Run `unshard ctl …`, with `given` as its input, and return its output and exit code."""
        own = {"UNSHARD_MASTER_ADDR": self.addresses, "UNSHARD_TOKEN": token or self._token}
        deadline = time.monotonic() + BOOT_SECONDS
        while True:
            done = subprocess.run(
                [*UNSHARD, "ctl", *words],
                input=given,
                capture_output=True,
                text=True,
                cwd=self.folder,
                env={**os.environ, **own},
                check=False,
            )
            if _UNASKED not in done.stdout + done.stderr or time.monotonic() > deadline:
                return CommandOutput(done.returncode, done.stdout, done.stderr)

    def asked(self, request: Request) -> Any:
        """Return the answer that `ctl` would print, without starting a process, for requests that are often repeated.

        Raises ClusterError as `MasterClient.ask`; if no master leads, after a while.
        """
        deadline = time.monotonic() + BOOT_SECONDS
        while True:
            try:
                return self.asked_once(request, BOOT_SECONDS)
            except ClusterError as error:
                if error.code != _UNASKED or time.monotonic() > deadline:
                    raise
                time.sleep(0.05)

    def asked_once(self, request: Request, seconds: float = LEADER_SECONDS) -> Any:
        """Ask once and return the answer. Raises ClusterError as `MasterClient.ask`."""
        return MasterClient(self.addresses.split(","), seconds, LinkSecurity(token=self._token)).ask(request)

    def ctl(self, *words: str, code: int = 0, token: str = "") -> Any:
        """Run `ctl` and return its JSON. Raises AssertionError if it ends with another exit code."""
        done = self.told(*words, token=token)
        assert done.exit_code == code, (
            f"unshard ctl {' '.join(words)} ended by {done.exit_code}:\n{done.stdout}{done.stderr}"
        )
        return json.loads(done.stdout)

    def give_up(self, worker: ClusterMember) -> None:
        """Tell the leader in the name of the worker that it leaves, so that nobody waits for its `worker-ttl`.

        For a worker that is dead, frozen or cut off: a heartbeat of its own brings it back. Raises ClusterError as
        `HttpMasterLink.beat`.
        """
        addr = f"127.0.0.1:{worker.port}"
        with closing(HttpMasterLink(self.addresses.split(","), LinkSecurity(token=self._token))) as link:
            link.beat(Heartbeat(name=worker.name, addr=addr, life=token_hex(8), number=1, leaving=True))

    def cut_off(self, worker: ClusterMember) -> None:
        """Cut the worker off from all masters, until `let_in`."""
        for gate in self.gates:
            gate.barred |= {worker.pid}
            gate.cut()

    def let_in(self, worker: ClusterMember) -> None:
        """Let a worker's connections pass again."""
        for gate in self.gates:
            gate.barred -= {worker.pid}

    def mend(self) -> None:
        """Repair the cluster: all members run, and none is frozen or cut off."""
        for gate in self.gates:
            gate.barred = frozenset()
        for one in (*self.masters, *self.workers):
            if one.runs:
                one.wake()
            elif one in self.masters:
                self.start_master(self.masters.index(one))
            else:
                one.start()

    def close(self) -> None:
        """Kill all processes, close the gates and remove the folder."""
        with ThreadPoolExecutor() as threads:
            list(threads.map(ClusterMember.kill, [*self.workers, *self.masters]))
        self._stack.close()

    def __enter__(self) -> Self:
        try:
            self.start()
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _member(self, name: str, words: Callable[[], Sequence[str]]) -> ClusterMember:
        return ClusterMember(name, self.folder / name, words)

    def _master_words(self, number: int) -> Callable[[], Sequence[str]]:
        own = {
            "name": f"m{number + 1}",
            "master-addr": "127.0.0.1:0",
            "advertise-addr": f"127.0.0.1:{self.gates[number].port}",
            "store": self._store,
        }
        return lambda: self._words("master", {**own, **self._keys, **self.of_master})

    def _worker_words(self, number: int) -> Callable[[], Sequence[str]]:
        own = {"name": f"w{number + 1}", "worker-addr": "127.0.0.1:0", "join": self.addresses}
        return lambda: self._words("worker", {**own, **self._keys, **self._of_worker})

    def _words(self, kind: str, keys: Mapping[str, Any]) -> list[str]:
        file = self.folder / keys["name"] / f"{kind}.yaml"
        file.write_text(json.dumps(keys))
        return [kind, "--config", str(file)]
