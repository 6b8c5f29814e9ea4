"""Step *decode* on a file that can't be decoded: the error itself comes out, whatever still looks at the bytes."""

from __future__ import annotations

from pathlib import Path

import pytest

from unshard.errors import BinlogError
from unshard.model.position import Location, Position
from unshard.mysql.connection import Endpoint
from unshard.relay.log import RelayLog
from unshard.relay.meta import SubDirectory
from unshard.sync.batch.plan import BatchPlan, BatchShape, Range
from unshard.sync.changes.decode import decode
from unshard.sync.source_log.reader import next_work
from unshard.target.meta import MetaTables

STORED = Path(__file__).parents[1] / "binlog" / "stored" / "mariadb-plain.binlog"


def test_a_broken_event_is_told_with_its_place(tmp_path: Path) -> None:
    path = tmp_path / "mysql-bin.000001"
    path.write_bytes(b"\xfebin" + bytes(100))
    piece = Range(str(path), path.name, 4, 104)
    plan = BatchPlan(
        source="s1",
        epoch=1,
        batch_id=1,
        begin=Position(path.name, 4),
        end=Position(path.name, 104),
        ranges=(piece,),
        checksum=True,
        shape=BatchShape(1, 100),
        tables=(),
        meta=MetaTables("dm_meta", "t"),
        target=Endpoint("127.0.0.1", 1, "root"),
    )
    with pytest.raises(BinlogError, match="BINLOG-023") as caught:
        decode(plan, piece)
    assert caught.value.where.position == "mysql-bin.000001:4"


def test_a_broken_event_is_told_while_the_log_is_followed(tmp_path: Path) -> None:
    folder = tmp_path / "0-1.000001"
    folder.mkdir()
    stored = STORED.read_bytes()
    path = folder / "mysql-bin.000001"
    path.write_bytes(stored[:-30] + bytes([stored[-30] ^ 1]) + stored[-29:])
    log, at = RelayLog(tmp_path, SubDirectory("0-1", 1)), Location(Position(path.name))
    written = Position(path.name, len(stored))

    def to_the_end() -> None:
        nonlocal at
        while (work := next_work(log, at, written, 1, "s1")) is not None:
            at = work.end

    with pytest.raises(BinlogError, match="BINLOG-001") as caught:
        to_the_end()
    assert caught.value.where.file == str(path)
