"""The files that a dump writes for some rows: in order, durable, and none left of an attempt that fails."""

from __future__ import annotations

import os
import resource
import threading
from collections.abc import Iterator
from itertools import chain
from pathlib import Path
from threading import Event
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from support.waiting import PATIENCE_SECONDS
from unshard.dump import write
from unshard.dump.durable import sync_file
from unshard.dump.files import checksum
from unshard.dump.write import FileLimits, write_files
from unshard.errors import DumpError
from unshard.model.table import Column, Table, TableName

TABLE = Table(TableName("s", "t"), (Column("id", "int", "int"),))
TEN_ROWS = FileLimits("parquet", 10, 1 << 20, 1000)


def batch(first: int, count: int) -> pa.RecordBatch:
    return pa.record_batch([pa.array(range(first, first + count), pa.int64())], ["id"])


def test_files_have_all_rows_in_their_order(tmp_path: Path) -> None:
    files = write_files(tmp_path, TABLE, [batch(0, 25), batch(25, 3), batch(28, 9)], TEN_ROWS)
    assert [file.rows for file in files] == [10, 10, 10, 7]
    found = [pq.read_table(tmp_path / file.part).column("id").to_pylist() for file in files]
    assert list(chain(*found)) == list(range(37))
    assert [checksum(tmp_path / file.part) for file in files] == [file.crc32 for file in files]
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(file.part for file in files)


def test_no_rows_are_no_file(tmp_path: Path) -> None:
    assert write_files(tmp_path, TABLE, [], TEN_ROWS) == []
    assert list(tmp_path.iterdir()) == []


def test_rows_are_read_while_the_file_before_becomes_durable(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    read_on = Event()

    def batches() -> Iterator[pa.RecordBatch]:
        yield batch(0, 10)
        read_on.set()
        yield batch(10, 10)

    def waits(path: Path) -> None:
        assert read_on.wait(PATIENCE_SECONDS), "rows are read only after the file is durable"
        sync_file(path)

    monkeypatch.setattr(write, "sync_file", waits)
    assert [file.rows for file in write_files(tmp_path, TABLE, batches(), TEN_ROWS)] == [10, 10]


@pytest.mark.parametrize("failing", [1, 2, 3])
@pytest.mark.parametrize("form", ["parquet", "sql"])
def test_nothing_is_left_where_the_disk_refuses_a_file(
    form: Any, failing: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    synced = 0

    def refuses(path: Path) -> None:
        nonlocal synced
        synced += 1
        if synced == failing:
            raise OSError(28, "No space left on device")
        sync_file(path)

    monkeypatch.setattr(write, "sync_file", refuses)
    with pytest.raises(DumpError) as caught:
        write_files(tmp_path, TABLE, [batch(0, 25)], FileLimits(form, 10, 1 << 20, 1000))
    assert caught.value.code == "DUMP-009"
    assert "No space left" in str(caught.value)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("written", [0, 30_000, 300_000])
def test_no_file_stays_open_where_the_disk_is_full(written: int, tmp_path: Path) -> None:
    """The room of an unlinked file is free only once it is closed."""
    table = Table(TableName("s", "t"), (Column("v", "varbinary", "varbinary(100)", length=100),))
    rows = [pa.record_batch([pa.array([os.urandom(100) for _ in range(10_000)], pa.binary())], ["v"])] * 3
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (written, before[1]))
    try:
        with pytest.raises(DumpError, match="DUMP-009"):
            write_files(tmp_path, table, rows, FileLimits("parquet", 20_000, 1 << 30, 1000))
        there = [os.readlink(entry.path) for entry in os.scandir("/proc/self/fd") if entry.is_symlink()]
        assert [name for name in there if name.startswith(str(tmp_path))] == []
        assert list(tmp_path.iterdir()) == []
        assert not [thread.name for thread in threading.enumerate() if thread.name.startswith("close")]
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def test_nothing_is_left_where_the_source_fails_while_a_file_is_closed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    closing, failed = Event(), Event()

    def batches() -> Iterator[pa.RecordBatch]:
        yield batch(0, 15)
        assert closing.wait(PATIENCE_SECONDS)
        failed.set()
        raise RuntimeError("the source is gone")

    def waits(path: Path) -> None:
        closing.set()
        assert failed.wait(PATIENCE_SECONDS)
        sync_file(path)

    monkeypatch.setattr(write, "sync_file", waits)
    with pytest.raises(RuntimeError):
        write_files(tmp_path, TABLE, batches(), TEN_ROWS)
    assert list(tmp_path.iterdir()) == []
