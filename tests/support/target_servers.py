"""The server that tests write to: a MariaDB, or what UNSHARD_TEST_TARGET names."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.mysql_server import Mysql80Server
from unshard.testing.throwaway_server import ThrowawayServer
from unshard.testing.tidb_server import TidbServer

BUILT_IN_COLLATIONS = {
    "loose_character_set_collations": ",".join(
        f"{charset}={charset}_general_ci" for charset in ("utf8mb3", "utf8mb4", "ucs2", "utf16", "utf32")
    )
}
"""For MariaDB 11.3 and newer: charsets have the default collations that all others have.

So statements that a test writes down mean the same on every release. What MariaDB makes of them by its own default has
tests in `tests/mysql_server`.
"""


TARGETS: dict[str, Callable[[], ThrowawayServer]] = {
    "mariadb": lambda: MariadbServer({"gtid_domain_id": "9", **BUILT_IN_COLLATIONS}),
    "mysql-8.0": Mysql80Server,
    "tidb": TidbServer,
}
"""By name, as UNSHARD_TEST_TARGET has it."""


def target_name() -> str:
    """Return the product and release of the targets of this run, a key of `TARGETS`."""
    return os.environ.get("UNSHARD_TEST_TARGET", "mariadb")


def new_target() -> ThrowawayServer:
    """A new one. It keeps the proof of what was applied, and how often (`testing.applied_once`)."""
    return TARGETS[target_name()]()


@contextmanager
def folding_names(target: ThrowawayServer) -> Iterator[ThrowawayServer]:
    """The run's target if it is a TiDB, which always folds names of tables, else a MariaDB of its own that does."""
    if isinstance(target, TidbServer):
        yield target
        return
    with MariadbServer({"lower_case_table_names": "1"}) as server:
        yield server
