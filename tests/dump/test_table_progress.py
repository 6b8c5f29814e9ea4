"""How far the dump of each table is, while its files are written."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pyarrow as pa

from support.waiting import wait_until
from unshard.dump.files import stem
from unshard.dump.metadata import DumpHeader
from unshard.dump.progress import table_progress
from unshard.dump.write import FileLimits, write_files
from unshard.model.position import Location, Position
from unshard.model.progress import CopyStage, TableProgress
from unshard.model.table import Column, Table, TableName

NAMES = (TableName("s", "a.b"), TableName("s", "a%b"), TableName("s", "c"))
LIMITS = FileLimits("sql", 10, 1 << 20, 1000)


def header(*names: TableName) -> DumpHeader:
    estimates = {stem(NAMES[0]): 15, stem(NAMES[2]): 7}
    place = Location(Position("bin.000001"))
    return DumpHeader("run", "s1", "lock-free", {}, place, names, {}, 22, "now", estimates=estimates)


def test_whole_files_count_their_rows_and_open_ones_only_their_bytes(tmp_path: Path) -> None:
    table = Table(NAMES[0], (Column("id", "int", "int"),))
    seen: list[tuple[TableProgress, ...]] = []

    def look() -> TableProgress:
        return table_progress(header(*NAMES), {}, tmp_path, 0.0)[0]

    def batches() -> Iterator[pa.RecordBatch]:
        for number in range(1, 6):
            yield pa.record_batch([pa.array(range(5), pa.int32())], ["id"])
            wait_until(lambda whole=number // 2: look().rows >= 10 * whole, "the full file is closed")  # type: ignore[misc]
            seen.append(table_progress(header(*NAMES), {}, tmp_path, 0.0))

    files = write_files(tmp_path, table, batches(), LIMITS)
    first = [tables[0] for tables in seen]
    assert [one.rows for one in first] == [0, 10, 10, 20, 20]
    assert [one.rows_about for one in first] == [15, 15, 15, 20, 20], "an estimate that is too small grows"
    assert {one.stage for one in first} == {CopyStage.DUMPING}
    assert first[-1].size > 0
    assert {tables[1] for tables in seen} == {TableProgress(NAMES[1], CopyStage.WAITING)}
    assert {tables[2] for tables in seen} == {TableProgress(NAMES[2], CopyStage.WAITING, rows_about=7)}
    done = table_progress(header(*NAMES), {f"{stem(NAMES[0])}.json": files}, tmp_path, 0.0)
    assert (done[0].stage, done[0].rows, done[0].rows_about) == (CopyStage.DUMPED, 25, 25)


def test_parts_of_an_attempt_that_has_died_do_not_count(tmp_path: Path) -> None:
    table = Table(NAMES[0], (Column("id", "int", "int"),))
    batch = pa.record_batch([pa.array(range(25), pa.int32())], ["id"])
    write_files(tmp_path, table, [batch], LIMITS)
    for part in tmp_path.iterdir():
        os.utime(part, (1000, 1000))
    assert table_progress(header(NAMES[0]), {}, tmp_path, 2000.0)[0].stage is CopyStage.WAITING
    write_files(tmp_path, table, [batch.slice(0, 12)], LIMITS)
    assert table_progress(header(NAMES[0]), {}, tmp_path, 2000.0)[0].rows == 12


def test_no_folder_is_no_progress(tmp_path: Path) -> None:
    assert table_progress(header(NAMES[0]), {}, tmp_path / "none", 0.0)[0].stage is CopyStage.WAITING
