"""Step *documents*: a row stops the task if a JSON column would store other values, and only if it is written."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from struct import pack
from types import SimpleNamespace
from typing import cast

import pyarrow as pa
import pytest
from made_events import File
from row_images import map_table, rows

from support.refusals import refusal
from unshard.errors import SyncError, Where
from unshard.model.change import Op
from unshard.model.position import Position
from unshard.model.table import Column, Index, Table, TableName
from unshard.mysql.connection import Endpoint
from unshard.sync.batch.excluded_changes import LeftOutRows
from unshard.sync.batch.plan import BatchPlan, BatchShape, Range, TablePlan
from unshard.sync.batch.stored_plan import digest
from unshard.sync.changes.documents import refuse_documents
from unshard.sync.planning.operators import refuse_ahead
from unshard.sync.planning.table_plans import TableRules
from unshard.sync.planning.target_plan import plan_target
from unshard.sync.planning.target_tables import TargetTables
from unshard.sync.steps.pipeline import before_exchange
from unshard.target.meta import MetaTables
from unshard.transform.block_allow import BlockAllowList
from unshard.transform.column_mapper import ColumnMapper
from unshard.transform.route import Router

LONG, JSON = 3, 245
NAME = TableName("s", "t")
COLUMNS = (Column("id", "int", "int(11)", nullable=False), Column("j", "json", "json"), Column("k", "json", "json"))
TABLE = Table(NAME, COLUMNS, (Index("PRIMARY", ("id",), (0,), unique=True),))
PRICE = b"\x0f\xf6\x04\x02\x01\x81\x05"  # DECIMAL(2,1), 1.5
SEVEN = b"\x05\x07\x00"
INSERT, UPDATE, DELETE = 30, 31, 32


def image(number: int, j: bytes | None, k: bytes | None = None) -> bytes:
    nulls = (j is None) << 1 | (k is None) << 2
    return bytes([nulls]) + pack("<i", number) + b"".join(pack("<I", len(v)) + v for v in (j, k) if v is not None)


def written(folder: Path, *events: tuple[int, bytes]) -> tuple[BatchPlan, list[int]]:
    """A batch of these row events, with the offsets of the events; column `j` is watched."""
    file = File()
    begin = len(file.data)
    map_table(file, [LONG, JSON, JSON], b"\x04\x04")
    offsets = []
    for code, images in events:
        offsets.append(len(file.data))
        rows(file, images, columns=3, code=code, last=code == events[-1][0])
    path = folder / "mysql-bin.000001"
    path.write_bytes(bytes(file.data))
    where = Position(path.name, begin), Position(path.name, len(file.data))
    table = TablePlan(TABLE, plan_target(TABLE, TABLE, Where()), documents=frozenset({"j"}))
    return BatchPlan(
        source="s1",
        epoch=1,
        batch_id=1,
        begin=where[0],
        end=where[1],
        ranges=(Range(str(path), path.name, begin, len(file.data), 0),),
        checksum=file.checksum,
        shape=BatchShape(1, 100),
        tables=(table,),
        meta=MetaTables("dm_meta", "t"),
        target=Endpoint("127.0.0.1", 1, "root"),
    ), offsets


def refused(plan: BatchPlan) -> SyncError:
    with pytest.raises(SyncError, match="SYNC-078") as caught:
        before_exchange(plan, plan.ranges)
    return caught.value


@pytest.mark.parametrize(
    "event",
    [
        (INSERT, image(3, SEVEN) + image(4, PRICE)),
        (UPDATE, image(3, SEVEN) + image(3, SEVEN) + image(4, PRICE) + image(4, PRICE)),
    ],
)
def test_the_first_document_stops(event: tuple[int, bytes], tmp_path: Path) -> None:
    plan, _ = written(tmp_path, (INSERT, image(1, SEVEN, PRICE)), event, (INSERT, image(9, PRICE)))
    error = refused(plan)
    assert error.values == {"column": "j", "target": "s.t", "seq": 2}
    assert (error.where.source, error.where.table) == ("s1", "s.t")
    assert "json-values: convert" in str(error)


@pytest.mark.parametrize(
    "event",
    [
        (INSERT, image(1, SEVEN, PRICE)),
        (INSERT, image(1, None, PRICE)),
        (INSERT, image(1, b"\x0f\xfd\x01x")),  # a VAR_STRING
        (UPDATE, image(1, PRICE) + image(1, SEVEN)),
        (DELETE, image(1, PRICE)),
    ],
)
def test_what_is_not_written_into_such_a_column_passes(event: tuple[int, bytes], tmp_path: Path) -> None:
    plan, _ = written(tmp_path, event)
    assert len(before_exchange(plan, plan.ranges)[0])
    refuse_ahead(replace(plan, sliced=True))


def test_a_table_without_such_columns_passes(tmp_path: Path) -> None:
    plan, _ = written(tmp_path, (INSERT, image(1, PRICE)))
    refused(plan)
    plan = replace(plan, tables=(replace(plan.tables[0], documents=frozenset()),))
    assert len(before_exchange(plan, plan.ranges)[0]) == 1
    refuse_ahead(replace(plan, sliced=True))


def test_a_row_that_is_left_out_passes(tmp_path: Path) -> None:
    """As `unshard ctl binlog skip` leaves it out."""
    plan, _ = written(tmp_path, (INSERT, image(1, SEVEN)), (INSERT, image(2, PRICE)), (INSERT, image(3, SEVEN)))
    assert refused(plan).values["seq"] == 1
    plan = replace(plan, tables=(replace(plan.tables[0], filters=(LeftOutRows(((1, 1),)),)),))
    assert len(before_exchange(plan, plan.ranges)[0]) == 2
    refuse_ahead(replace(plan, sliced=True))


def test_a_batch_of_slices_is_looked_at_before_its_first(tmp_path: Path) -> None:
    plan, offsets = written(tmp_path, (INSERT, image(1, SEVEN)), (INSERT, image(2, PRICE)))
    refuse_ahead(plan)  # one that is applied at once is decoded whole before anything is written
    with pytest.raises(SyncError, match="SYNC-078") as caught:
        refuse_ahead(replace(plan, sliced=True))
    assert caught.value.where.position == f"mysql-bin.000001:{offsets[1]}"


def test_the_rules_tell_the_columns_and_an_open_batch_can_go_on_without() -> None:
    targets = TargetTables(lambda name: TABLE)
    ends = "s1", BlockAllowList(), Router({}), ColumnMapper({}), lambda name: TABLE, targets
    told = TableRules(*ends, {}, documents=lambda table, there: frozenset({"j"}))
    (stopping,) = told.plans([NAME], Position("mysql-bin.000001", 4))
    (again,) = told.with_structures({NAME: TABLE}).plans([NAME], Position("mysql-bin.000001", 4))
    (converting,) = TableRules(*ends, {}).plans([NAME], Position("mysql-bin.000001", 4))
    assert stopping.documents == again.documents == {"j"}
    assert converting.documents == frozenset()
    assert digest(stopping) == digest(converting)


LOST = '{"a": 0.1234567890123456789}'


@pytest.mark.parametrize(
    ("images", "seq"),
    [
        ([(Op.INSERT, '{"a": 1}'), (Op.INSERT, LOST), (Op.INSERT, LOST)], 1),
        ([(Op.UPDATE_BEFORE, "{}"), (Op.UPDATE_AFTER, LOST)], 1),
        ([(Op.UPDATE_BEFORE, LOST), (Op.UPDATE_AFTER, "{}"), (Op.DELETE, LOST), (Op.INSERT, None)], None),
    ],
)
def test_a_number_in_a_text_that_the_target_rounds(images: list[tuple[Op, str | None]], seq: int | None) -> None:
    """Column `j` is text here and JSON in the target; `k` is text there too."""
    text = replace(COLUMNS[1], type="longtext", definition="longtext", charset="utf8mb4")
    own = replace(TABLE, columns=(COLUMNS[0], text, replace(text, name="k")))
    table = TablePlan(own, plan_target(own, own, Where()), documents=frozenset({"j"}))
    plan = SimpleNamespace(source="s1", by_name=lambda: {NAME: table})
    ops, texts = zip(*images, strict=True)
    batch = pa.record_batch(
        {
            "op": pa.array(ops, pa.int8()),
            "seq": pa.array(range(len(ops)), pa.int64()),
            "id": pa.array([1] * len(ops), pa.int64()),
            "j": pa.array(texts, pa.string()),
            "k": pa.array([LOST] * len(ops), pa.string()),
        }
    )
    error = refusal(SyncError, refuse_documents, cast(BatchPlan, plan), [(table, batch)], ())
    assert (error.values["seq"] if error is not None else None) == seq
