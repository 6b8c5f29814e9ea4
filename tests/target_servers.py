"""The server that tests write to: a MariaDB, or a TiDB where UNSHARD_TEST_TARGET is `tidb`."""

from __future__ import annotations

import os

from unshard.testing.servers import MariadbServer, ThrowawayServer
from unshard.testing.tidb_server import TidbServer


def new_target() -> ThrowawayServer:
    """A new one. It keeps the proof of what was applied, and how often (`testing.applied_once`)."""
    if os.environ.get("UNSHARD_TEST_TARGET") == "tidb":
        return TidbServer()
    return MariadbServer({"gtid_domain_id": "9"})
