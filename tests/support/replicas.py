"""A source and the replica that takes its place: two MariaDBs, or two of the release that UNSHARD_TEST_SOURCE names."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from support.source_servers import new_source
from unshard.testing.throwaway_server import ThrowawayServer


@dataclass(frozen=True, slots=True)
class _Words:
    """How a release names replication. `waits` gives 0 or more where the replica has all of `end`."""

    follow: str
    start: str
    stop: tuple[str, ...]
    end: str
    waits: str


_OLD_STOP = ("STOP SLAVE", "RESET SLAVE ALL")
_MARIADB = _Words("MASTER_USE_GTID=slave_pos", "START SLAVE", _OLD_STOP, "gtid_binlog_pos", "MASTER_GTID_WAIT")
_MYSQL_56 = _Words(
    "MASTER_AUTO_POSITION=1", "START SLAVE", _OLD_STOP, "gtid_executed", "WAIT_UNTIL_SQL_THREAD_AFTER_GTIDS"
)
_MYSQL = _Words(
    "SOURCE_AUTO_POSITION=1, GET_SOURCE_PUBLIC_KEY=1",
    "START REPLICA",
    ("STOP REPLICA", "RESET REPLICA ALL"),
    "gtid_executed",
    "WAIT_FOR_EXECUTED_GTID_SET",
)


def _words(server: ThrowawayServer) -> _Words:
    ((version,),) = server.query("SELECT VERSION()")
    if server.product == "MariaDB":
        return _MARIADB
    return _MYSQL_56 if str(version).startswith("5.6") else _MYSQL


class Pair:
    """A primary and its replica, which may be promoted."""

    def __init__(self, primary: ThrowawayServer, replica: ThrowawayServer) -> None:
        self.primary, self.replica = primary, replica
        self._words = _words(replica)
        old = self._words is not _MYSQL
        verb, of = ("CHANGE MASTER TO", "MASTER") if old else ("CHANGE REPLICATION SOURCE TO", "SOURCE")
        replica.run(
            f"{verb} {of}_HOST='127.0.0.1', {of}_PORT={primary.port}, {of}_USER='root', {self._words.follow}",
            self._words.start,
        )

    def catch_up(self) -> None:
        ((end,),) = self.primary.query(f"SELECT @@global.{self._words.end}")
        ((left,),) = self.replica.query(f"SELECT {self._words.waits}(%s, 90) >= 0", (end,))
        assert left == 1

    def pause(self) -> None:
        self.replica.run(self._words.stop[0])

    def go_on(self, *own: str) -> None:
        """Let the replica follow its primary again, behind these statements of its own."""
        apart = ("SET SESSION gtid_domain_id = 5",) if self._words is _MARIADB else ()
        self.replica.run(*apart, *own, self._words.start)

    def promote(self) -> None:
        """The primary is gone; the replica has all of it, in other files at other offsets."""
        self.catch_up()
        self.die()

    def die(self) -> None:
        """The primary is gone; the replica has what it has."""
        self.replica.run(*self._words.stop)
        self.primary.kill()


@contextmanager
def replicated() -> Iterator[Pair]:
    """A primary and its replica, whose binlog has other files and offsets."""
    with new_source() as primary, new_source() as replica:
        replica.run("FLUSH BINARY LOGS", "FLUSH BINARY LOGS")
        yield Pair(primary, replica)
