"""Step *decode* on a file that can't be decoded: the error itself comes out, whatever still looks at the bytes."""

from __future__ import annotations

from pathlib import Path

import pytest

from unshard.errors import BinlogError
from unshard.model.position import Position
from unshard.mysql.connection import Endpoint
from unshard.sync.batch import BatchPlan, Range, Shape
from unshard.sync.pipeline import decode
from unshard.target.meta import MetaTables


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
        shape=Shape(1, 100),
        tables=(),
        meta=MetaTables("dm_meta", "t"),
        target=Endpoint("127.0.0.1", 1, "root"),
    )
    with pytest.raises(BinlogError, match="BINLOG-023") as caught:
        decode(plan, piece)
    assert caught.value.where.position == "mysql-bin.000001:4"
