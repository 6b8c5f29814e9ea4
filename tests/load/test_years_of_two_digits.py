"""A YEAR(2) of a dump is written as text: there number 0 is the year 2000, and only `'0000'` is the year zero."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from unshard.dump.sql_file import SqlFile
from unshard.errors import Where
from unshard.load.pieces import parquet_pieces
from unshard.load.sql_dump import Rewriter
from unshard.model.table import Column, Table, TableName

TABLE = Table(TableName("d", "t"), (Column("y", "year", "year(2)"), Column("z", "year", "year(4)")))
ROWS = pa.RecordBatch.from_pydict({"y": [0, 2000, 1950, None], "z": [0, 2000, 1950, None]})
WRITTEN = ["('0000',0)", "('2000',2000)", "('1950',1950)", "(NULL,NULL)"]


def test_of_parquet(tmp_path: Path) -> None:
    pq.write_table(pa.Table.from_batches([ROWS]), tmp_path / "t.parquet")
    rewriter = Rewriter(TABLE.name, ("y", "z"), "INSERT", None, Where())
    (piece,) = parquet_pieces(tmp_path / "t.parquet", 0, TABLE, rewriter)
    assert piece.statements == (f"INSERT INTO `d`.`t` (`y`,`z`) VALUES {','.join(WRITTEN)}".encode(),)


def test_in_files_of_sql(tmp_path: Path) -> None:
    file = SqlFile(tmp_path / "t.sql", TABLE, ["y", "z"], 1 << 20)
    file.write(ROWS)
    file.close()
    assert (tmp_path / "t.sql").read_text().endswith("VALUES\n" + ",\n".join(WRITTEN) + ";\n")
