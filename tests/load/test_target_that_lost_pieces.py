"""The target of a load fails over to a replica that lacks its last pieces: the load says so, and goes on from there."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from support.lost_commits import Kept
from unshard.dump.unit import DumpUnit
from unshard.errors import SyncError
from unshard.load.pieces import LoadPiece
from unshard.load.unit import LoadUnit
from unshard.load.write import Destination, Writer
from unshard.testing.mariadb_server import MariadbServer
from unshard.worker.auto_resume import makes_sense

pytestmark = pytest.mark.server


@pytest.mark.parametrize("claim_too", [False, True])
def test_pieces_that_the_target_lost_are_loaded_again(
    make_dump: Callable[..., DumpUnit],
    make_load: Callable[..., LoadUnit],
    source_server: MariadbServer,
    target_server: MariadbServer,
    schema: str,
    monkeypatch: pytest.MonkeyPatch,
    *,
    claim_too: bool,
) -> None:
    source_server.run(
        f"CREATE DATABASE {schema}",
        f"CREATE TABLE {schema}.t (id INT PRIMARY KEY, v VARCHAR(1000))",
        f"INSERT INTO {schema}.t SELECT seq, REPEAT('x', 1000) FROM mysql.seq_1_to_6000",
    )
    make_dump(schema, rows=0, format="sql").run()
    monkeypatch.setattr("unshard.load.pieces.PIECE_BYTES", 1)
    kept: list[Kept] = []
    applied = 0
    apply = Writer.apply

    def losing(writer: Writer, piece: LoadPiece, destination: Destination) -> None:
        nonlocal applied
        applied += 1
        apply(writer, piece, destination)
        if applied == 1:
            tables = [f"{schema}.t", f"{schema}_meta.task_load_chunk"]
            kept.append(Kept(target_server, f"{schema}_kept", tables))
            if claim_too:
                target_server.run(f"UPDATE {kept[0].names[tables[1]]} SET epoch = epoch - 1")
        if applied == 2:
            kept[0].bring_back()

    monkeypatch.setattr(Writer, "apply", losing)
    unit: Any = make_load(schema)
    with pytest.raises(SyncError, match="SYNC-079") as raised:
        unit.run()
    assert makes_sense(raised.value)
    make_load(schema).run()
    assert applied > 3
    there = f"SELECT COUNT(*), SUM(id) FROM {schema}.t"
    assert target_server.query(there) == source_server.query(there)
