"""Relays of one server that are compared with it byte for byte."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from support.waiting import PATIENCE_SECONDS, ExpiredWait, wait_until
from unshard.config.source import SourceConfig
from unshard.model.position import Location, Position
from unshard.relay.unit import RelayUnit
from unshard.testing.mariadb_server import MariadbServer

IN_USE_FLAG = 21  # offset in the file of the low byte of its format event's flags


def newest(server: MariadbServer) -> Position:
    ((name, offset, *_),) = server.query("SHOW MASTER STATUS")
    return Position(name, offset)


def insert(server: MariadbServer, rows: int = 20, size: int = 500) -> None:
    server.run(*(f"INSERT INTO d.t (b) VALUES (REPEAT('{chr(97 + i % 26)}', {size}))" for i in range(rows)))


class Rig:
    """Starts relays into one folder and compares what they wrote with the server's own files."""

    def __init__(self, server: MariadbServer, folder: Path) -> None:
        self.server, self.folder = server, folder
        self.units: list[RelayUnit] = []

    def relay(
        self,
        start: Location | None = None,
        port: int = 0,
        heartbeat_seconds: float = 5.0,
        upstream: str | None = None,
        **keys: Any,
    ) -> RelayUnit:
        endpoint = replace(self.server.endpoint, port=port or self.server.port)
        form = {"source-id": "s1", "from": {"host": "127.0.0.1", "port": endpoint.port, "user": "root"}, **keys}
        config, heartbeats = SourceConfig.model_validate(form), heartbeat_seconds
        unit = RelayUnit(config, endpoint, self.folder, start, heartbeat_seconds=heartbeats, upstream=upstream)
        self.units.append(unit)
        unit.start()
        # which file it begins with is settled here, whatever the test does to the server next
        wait_until(lambda: unit.status().location is not None or unit.status().trouble is not None, "it has begun")
        return unit

    def catch_up(self, unit: RelayUnit) -> None:
        if not unit.wait_for(newest(self.server), PATIENCE_SECONDS):
            unit.check()
            raise ExpiredWait(f"not in {PATIENCE_SECONDS:.0f} s: the relay has all\n{unit.status()}")

    def compare(self, unit: RelayUnit, *, crashed: bool = False) -> tuple[str, ...]:
        """Close the server's file, catch up, stop; all relay files but the newest must be the server's. Their names."""
        self.server.run("FLUSH BINARY LOGS")
        self.catch_up(unit)
        unit.stop()
        names = unit.log.files()[:-1]
        for name in names:
            theirs = bytearray((self.server.data / name).read_bytes())
            if crashed:
                theirs[IN_USE_FLAG] &= 0xFE  # a crash leaves the mark on the file; it is never sent
            assert unit.log.path(name).read_bytes() == theirs, name
        return names
