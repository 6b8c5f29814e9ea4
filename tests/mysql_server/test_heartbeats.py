"""Heartbeats of a real MySQL: the first kind as we ask for them, and the second, which a replica must ask for."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from uuid import uuid4

import pytest

from unshard.model.position import Position
from unshard.mysql.connection import session
from unshard.mysql.flavour import Server, identify
from unshard.source import replica
from unshard.source.replica import Piece, ReplicaEvents, ReplicaStream
from unshard.source.replica_protocol import ReplicaRequest, dump_command
from unshard.testing.mysql_server import MysqlServer

pytestmark = pytest.mark.server

WANTS_V2 = 2  # a flag of COM_BINLOG_DUMP


@pytest.mark.parametrize(("flags", "code"), [(0, 27), (WANTS_V2, 41)])
def test_heartbeats_leave_the_stream_whole(
    flags: int, code: int, mysql_source: MysqlServer, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def asking(server: Server, request: ReplicaRequest) -> bytes:
        command = dump_command(server, request)
        return command[:5] + struct.pack("<H", flags) + command[7:]

    heard: list[int] = []
    special = ReplicaStream._special

    def listening(self: ReplicaStream, payload: bytes) -> Iterator[Piece]:
        heard.append(payload[5])
        return special(self, payload)

    monkeypatch.setattr(replica, "dump_command", asking)
    monkeypatch.setattr(ReplicaStream, "_special", listening)
    mysql_source.run("FLUSH BINARY LOGS")
    path = mysql_source.binlog_files()[-1]
    with session(mysql_source.endpoint, "source") as connection:
        server = identify(connection)
    stream = ReplicaStream(
        mysql_source.endpoint,
        server,
        ReplicaRequest(Position(path.name), 4_000_000_001, str(uuid4()), heartbeat_seconds=0.2),
    )
    got = b""
    for piece in stream.pieces(5):
        got += bytes(piece.data) if isinstance(piece, ReplicaEvents) else b""
        if heard.count(code) == 2:
            mysql_source.run(f"CREATE DATABASE {schema}")
            heard.append(code)
        if schema.encode() in got and heard.count(code) > 4:
            break
    stream.close()
    written = bytearray(path.read_bytes()[4:])
    written[17] &= 0xFE  # the mark of a file in use is never sent
    assert got == written
