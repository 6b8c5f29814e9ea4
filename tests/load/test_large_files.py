"""Files of SQL that are larger than the memory that the load may take."""

from __future__ import annotations

import errno
import gzip
import tempfile
import tracemalloc
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest

from unshard.errors import LoadError, Where
from unshard.load.pieces import open_sql, sql_pieces
from unshard.load.sql_dump import Rewriter
from unshard.model.table import TableName

STATEMENT = b"INSERT INTO `t` VALUES (1,'" + b"x" * (1 << 20) + b"');\n"
COUNT = 64


@pytest.fixture(params=["s.t.sql", "s.t.sql.gz"])
def file(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    """A file of 64 MiB, unpacked."""
    path = tmp_path / str(request.param)
    with gzip.open(path, "wb", 1) if path.suffix == ".gz" else path.open("wb") as out:
        for _ in range(COUNT):
            out.write(STATEMENT)
    return path


@pytest.fixture
def peak() -> Iterator[Any]:
    """The largest memory that Python has taken since the test began."""
    tracemalloc.start()
    yield lambda: tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()


def test_a_file_is_not_read_into_memory_whole(file: Path, peak: Any) -> None:
    rewriter = Rewriter(TableName("d", "t"), ("id", "v"), "INSERT", None, Where())
    text = open_sql(file, Where(), None)
    assert sum(len(piece.statements) for piece in sql_pieces(text, 0, 0, rewriter)) == COUNT
    assert peak() < 24 << 20


def test_a_disk_without_room_for_an_unpacked_file_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full:
        def __enter__(self) -> Full:
            return self

        def __exit__(self, *failure: object) -> None:
            pass

        def write(self, data: bytes) -> NoReturn:
            raise OSError(errno.ENOSPC, "No space left on device")

    path = tmp_path / "s.t.sql.gz"
    path.write_bytes(gzip.compress(STATEMENT))
    monkeypatch.setattr(tempfile, "TemporaryFile", Full)
    with pytest.raises(LoadError, match="LOAD-040") as told:
        open_sql(path, Where(), None)
    assert tempfile.gettempdir() in str(told.value)
    assert "No space left" in told.value.cause


def test_an_empty_file_has_no_rows(tmp_path: Path) -> None:
    path = tmp_path / "s.t.sql"
    path.write_bytes(b"")
    rewriter = Rewriter(TableName("d", "t"), ("id", "v"), "INSERT", None, Where())
    (piece,) = sql_pieces(open_sql(path, Where(), None), 0, 0, rewriter)
    assert (piece.statements, piece.last) == ((), True)
