"""Reports of changed keys: packed and unpacked, cut to their size, shared among tasks."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

from unshard.model.table import TableName
from unshard.sync.batch import key_report
from unshard.sync.batch.key_report import KeyReport, KeyReportTable, pack
from unshard.sync.steps.report_keys import KeyShare

A, B = TableName("s", "a"), TableName("s", "b")
TARGET = TableName("s", "t")


def keys(numbers: range) -> pa.Array:
    return pa.array([f"{number}".encode() for number in numbers], pa.binary())


def test_a_report_is_read_back_from_its_stored_parts() -> None:
    tables = [
        (KeyReportTable(A, TARGET, ("id", "k"), 1, 2, 3), pa.array([b"1\0'x'", b"2\0'y'"], pa.binary())),
        (KeyReportTable(B, TARGET, (), 4), pa.array([], pa.binary())),
    ]
    (report,) = pack(tables)
    found = list(KeyReport.of(report.described, report.keys, report.data).unpacked())
    assert [(table, values.to_pylist()) for table, values in found] == [(t, v.to_pylist()) for t, v in tables]
    assert report.keys == 2
    assert pack([]) == ()


def test_large_reports_are_cut_and_count_changes_once(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(key_report, "PART_BYTES", 1000)
    reports = pack([(KeyReportTable(A, TARGET, ("id",), 500), keys(range(500)))])
    assert len(reports) > 5
    assert sum(report.keys for report in reports) == 500
    assert sum(table.inserts for report in reports for table in report.tables) == 500
    found = [key for report in reports for _, values in report.unpacked() for key in values.to_pylist()]
    assert found == keys(range(500)).to_pylist()


@pytest.mark.parametrize("count", [0, 1, 3, 100])
def test_shares_are_of_all_rows_once(count: int) -> None:
    batch = pa.RecordBatch.from_arrays([pa.array(np.arange(count))], ["n"])
    parts = [KeyShare(share, 4).of(batch).column(0).to_pylist() for share in range(4)]
    assert [number for part in parts for number in part] == list(range(count))
