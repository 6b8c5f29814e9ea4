"""A source and the replica that takes its place."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from unshard.testing.mariadb_server import MariadbServer


class Pair:
    """A primary and its replica, which may be promoted."""

    def __init__(self, primary: MariadbServer, replica: MariadbServer) -> None:
        self.primary, self.replica = primary, replica
        replica.run(
            f"CHANGE MASTER TO MASTER_HOST='127.0.0.1', MASTER_PORT={primary.port}, MASTER_USER='root',"
            " MASTER_USE_GTID=slave_pos",
            "START SLAVE",
        )

    def catch_up(self) -> None:
        ((end,),) = self.primary.query("SELECT @@gtid_binlog_pos")
        ((left,),) = self.replica.query("SELECT MASTER_GTID_WAIT(%s, 90)", (end,))
        assert left == 0

    def promote(self) -> None:
        """The primary is gone; the replica has all of it, in other files at other offsets."""
        self.catch_up()
        self.replica.run("STOP SLAVE", "RESET SLAVE ALL")
        self.primary.kill()


@contextmanager
def replicated() -> Iterator[Pair]:
    """A primary and its replica, whose binlog has other files and offsets."""
    with MariadbServer() as primary, MariadbServer({"log_slave_updates": "ON"}) as replica:
        replica.run("FLUSH BINARY LOGS", "FLUSH BINARY LOGS")
        yield Pair(primary, replica)
