"""Fetches files from before a relay log's first one, beside its writer and while others read.

The newest comes first. Each is fetched whole under another name and gets its own name at the end: so the log never has
a hole, whatever dies when. A file that a dead process left under the other name is begun anew.
"""

from __future__ import annotations

import os
import random
import threading
from pathlib import Path
from uuid import uuid4

from unshard.errors import RelayError, UnshardError, Where
from unshard.log import logger
from unshard.model.position import FIRST_OFFSET, Position
from unshard.mysql.connection import Endpoint, session
from unshard.mysql.flavour import identify
from unshard.relay.log import RelayLog
from unshard.relay.meta import disk, sync_folder
from unshard.relay.writer import MAGIC
from unshard.retry import pauses
from unshard.source.replica import Begin, ReplicaEvents, ReplicaStream
from unshard.source.replica_protocol import ReplicaRequest
from unshard.source.requirements import check_available

HEARTBEAT_SECONDS = 5.0
_IDLE_SECONDS = 0.5
_LOWEST_RANDOM_ID = 0xFFFFFFFF // 10


class Backfill:
    """A background fetcher of the files that a server wrote before the first file of a relay log.

    It has a thread of its own. Any thread may call its methods.
    """

    def __init__(self, source: str, endpoint: Endpoint, log: RelayLog) -> None:
        self.log = log
        self._source, self._endpoint = source, endpoint
        self._lock = threading.Lock()
        self._stopping = threading.Event()
        self._thread: threading.Thread | None = None
        self._wanted: str | None = None
        self._trouble: UnshardError | None = None

    def want(self, file: str) -> None:
        """Fetch the missing files from `file` on, in the background; also again after an error."""
        with self._lock:
            if self._wanted is None or Position(file) < Position(self._wanted):
                self._wanted, self._trouble = file, None
            if self._trouble is None and (self._thread is None or not self._thread.is_alive()):
                self._thread = threading.Thread(target=self._run, name=f"backfill {self._source}", daemon=True)
                self._thread.start()

    def renew(self, endpoint: Endpoint) -> None:
        """Use another login from the next file on."""
        self._endpoint = endpoint

    def check(self) -> None:
        """Raise the error that it gave up with, once; the files wanted next are tried again."""
        with self._lock:
            trouble, self._trouble = self._trouble, None
        if trouble is not None:
            raise trouble

    def stop(self) -> None:
        """Stop the thread and wait for its end. May be called more than once, and where none was started."""
        self._stopping.set()
        if self._thread is not None:
            self._thread.join()

    def _run(self) -> None:
        waits = pauses()
        while not self._stopping.is_set():
            try:
                with self._lock:
                    file = self._next()
                    if file is None:
                        self._wanted = None  # files purged from now on are not fetched again for this
                        return
                self._fetch(file)
                waits = pauses()
            except UnshardError as error:
                log = logger("relay", source=self._source)
                log.warning("older files are not fetched", error=str(error), again=error.retryable)
                if not error.retryable:
                    with self._lock:
                        self._wanted, self._trouble = None, error.at(source=self._source)
                    return
                self._stopping.wait(next(waits))

    def _next(self) -> str | None:
        """Return the newest file that is missing, or None where all wanted files exist."""
        first = Position(self.log.files()[0])
        assert self._wanted is not None
        if first.number <= Position(self._wanted).number:
            return None
        base, _, digits = first.file.rpartition(".")
        return f"{base}.{first.number - 1:0{len(digits)}d}"

    def _fetch(self, file: str) -> None:
        with session(self._endpoint, "source") as connection:
            server = identify(connection)
            if server.uuid != self.log.sub_directory.uuid:
                values = {"expected": self.log.sub_directory.uuid, "found": server.uuid}
                raise RelayError("RELAY-008", Where(source=self._source), values=values)
            check_available(connection, Position(file), self._source)
        begin = Position(file, FIRST_OFFSET)
        request = ReplicaRequest(begin, random.randint(_LOWEST_RANDOM_ID, 0xFFFFFFFF), str(uuid4()), HEARTBEAT_SECONDS)
        stream = ReplicaStream(self._endpoint, server, request)
        try:
            self._write(stream, file)
        finally:
            stream.close()

    def _write(self, stream: ReplicaStream, file: str) -> None:
        """Write the stream's first file, up to where the server names the next one."""
        path = self.log.path(file)
        beside = self.log.directory / f".{file}.part"
        with disk(beside), beside.open("wb") as part:
            part.write(MAGIC)
            for piece in stream.pieces(_IDLE_SECONDS):
                if self._stopping.is_set():
                    return
                if isinstance(piece, Begin) and piece.position.file != file:
                    break
                if isinstance(piece, ReplicaEvents):
                    part.write(piece.data)
            part.flush()
            os.fsync(part.fileno())
        with disk(path):
            _publish(beside, path)


def _publish(beside: Path, path: Path) -> None:
    beside.rename(path)
    sync_folder(path.parent)
