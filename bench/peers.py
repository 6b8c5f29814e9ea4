"""The tools with which our figures are compared, each run as its users run it. Seconds are wall-clock time."""

from __future__ import annotations

import logging
import subprocess
import tempfile
import time
from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from MySQLdb.cursors import DictCursor

from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.programs import program
from unshard.testing.throwaway_server import ThrowawayServer


class PeerFailedError(RuntimeError):
    """A tool ended with an error; the text is its output."""


@dataclass(frozen=True, slots=True)
class DumpAndLoad:
    dump_seconds: float
    load_seconds: float


def dump_and_load(source: MariadbServer, target: ThrowawayServer, schema: str, *, threads: int = 2) -> DumpAndLoad:
    """Run mydumper, then myloader, on one schema; the target's copy is replaced."""
    with tempfile.TemporaryDirectory(prefix="unshard-bench-") as folder:
        width = ["--threads", str(threads)]
        out = ["--outputdir", folder, "--database", schema, "--chunk-filesize", "16"]
        dumped = _timed([program("mydumper"), *_login(source), *width, *out])
        loaded = _without_deadlock(
            [program("myloader"), *_login(target), *width, "--directory", folder, "--overwrite-tables"]
        )
    return DumpAndLoad(dumped, loaded)


def replay(files: Sequence[Path], target: ThrowawayServer) -> float:
    """Run `mariadb-binlog FILES | mariadb`. Returns the seconds until the target has applied everything.

    The target must have the tables. Its strict GTID mode is off meanwhile, because the source's GTIDs come with the
    changes.
    """
    target.query("SET GLOBAL gtid_strict_mode = OFF")
    try:
        begun = time.perf_counter()
        _pipe([program("mariadb-binlog"), *map(str, files)], [program("mariadb"), "--no-defaults", *_login(target)])
        return time.perf_counter() - begun
    finally:
        target.query("SET GLOBAL gtid_strict_mode = ON")


REPLICA = {"log_slave_updates": "ON", "slave_parallel_mode": "optimistic", "server_id": "4000002"}
"""Options of a target that becomes a replica: its binlog has the rows, as it has them when we write them."""


def replicate(source: MariadbServer, file: Path, target: ThrowawayServer, *, threads: int) -> float:
    """Make the target a replica of the source, from the begin of a binlog file on, with that many applying threads.

    Returns the seconds until it has applied everything. Its SQL threads write row events without SQL. The target must
    have the tables and the options `REPLICA`.
    """
    end, position, *_ = source.query("SHOW MASTER STATUS")[0]
    target.run(
        "SET GLOBAL gtid_strict_mode = OFF",
        f"SET GLOBAL slave_parallel_threads = {0 if threads == 1 else threads}",
        f"CHANGE MASTER TO MASTER_HOST = '127.0.0.1', MASTER_PORT = {source.port}, MASTER_USER = 'root',"
        f" MASTER_USE_GTID = no, MASTER_LOG_FILE = '{file.name}', MASTER_LOG_POS = 4",
    )
    begun = time.perf_counter()
    target.run("START SLAVE")
    ((waited,),) = target.query("SELECT MASTER_POS_WAIT(%s, %s, 600)", (end, position))
    seconds = time.perf_counter() - begun
    if waited is None or int(waited) < 0:
        with closing(target.connection()) as connection, connection.cursor(DictCursor) as cursor:
            cursor.execute("SHOW SLAVE STATUS")
            status = cursor.fetchone()
        raise PeerFailedError(f"the replica stopped: {status['Last_IO_Error']} {status['Last_SQL_Error']}")
    target.run("STOP SLAVE")
    return seconds


def _pipe(reader: list[str], writer: list[str]) -> None:
    """Run `reader | writer` to the end. Raises PeerFailedError if either fails."""
    with tempfile.TemporaryFile() as said, subprocess.Popen(reader, stdout=subprocess.PIPE, stderr=said) as first:
        second = subprocess.run(writer, stdin=first.stdout, capture_output=True, check=False)
        if first.stdout is not None:
            first.stdout.close()  # a writer that gave up ends the reader too
        if first.wait() or second.returncode:
            raise PeerFailedError(f"{first.returncode} and {second.returncode}: {second.stderr.decode()[-500:]}")


def decode(file: Path) -> float:
    """Return the seconds that `mariadb-binlog` takes to decode and print every row of a file."""
    return _timed([program("mariadb-binlog"), "--base64-output=decode-rows", "--verbose", str(file)])


def python_rows_per_s(server: MariadbServer, file: str, rows: int) -> float:
    """Return the changes a second that mysql-replication reads from the server, over the first `rows` of a binlog file.

    An UPDATE counts once, as it does for us.
    """
    from pymysqlreplication import BinLogStreamReader
    from pymysqlreplication.row_event import DeleteRowsEvent, UpdateRowsEvent, WriteRowsEvent

    logging.getLogger("pymysqlreplication").setLevel(logging.ERROR)  # it warns unless binlog_row_metadata is FULL
    stream = BinLogStreamReader(
        connection_settings={"host": "127.0.0.1", "port": server.port, "user": "root", "passwd": ""},
        server_id=4_000_001,
        log_file=file,
        log_pos=4,
        only_events=[DeleteRowsEvent, UpdateRowsEvent, WriteRowsEvent],
        is_mariadb=True,
    )
    try:
        begun = time.perf_counter()
        found = 0
        for event in stream:
            found += len(event.rows)
            if found >= rows:
                return found / (time.perf_counter() - begun)
    finally:
        stream.close()
    raise AssertionError(f"mysql-replication read {found} of {rows} rows")


def _login(server: ThrowawayServer) -> list[str]:
    return ["--host", "127.0.0.1", "--port", str(server.port), "--user", "root"]


def _without_deadlock(command: list[str]) -> float:
    """Return the seconds of a run that repeats all of its work; one whose own threads deadlock is begun again."""
    for _ in range(3):
        try:
            return _timed(command)
        except PeerFailedError as error:
            if "Deadlock found" not in str(error):
                raise
    return _timed(command)


def _timed(command: list[str]) -> float:
    """Return the seconds of one run. Its output is discarded."""
    begun = time.perf_counter()
    done = subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, check=False)
    if done.returncode:
        raise PeerFailedError(f"{Path(command[0]).name} ended with {done.returncode}: {done.stderr.decode()[-500:]}")
    return time.perf_counter() - begun
