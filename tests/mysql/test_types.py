"""The Arrow type of every column type."""

from __future__ import annotations

import pyarrow as pa
import pytest

from unshard.errors import BinlogError
from unshard.model.table import Column
from unshard.mysql.types import arrow_type


@pytest.mark.parametrize(
    ("kind", "definition", "charset", "expected"),
    [
        *[(kind, kind, None, pa.int64()) for kind in ("tinyint", "smallint", "mediumint", "int", "bigint", "year")],
        ("bigint", "bigint(20) unsigned", None, pa.uint64()),
        ("int", "int(10) zerofill", None, pa.uint64()),
        ("year", "year(4)", None, pa.int64()),
        ("float", "float unsigned", None, pa.float32()),
        ("double", "double", None, pa.float64()),
        *[(kind, kind, None, pa.string()) for kind in ("decimal", "date", "time", "datetime", "timestamp")],
        *[(kind, kind, None, pa.string()) for kind in ("uuid", "inet4", "inet6")],
        *[(kind, kind, "latin1", pa.string()) for kind in ("char", "varchar", "tinytext", "text", "longtext")],
        *[(kind, kind, "gbk", pa.string()) for kind in ("enum", "set")],
        *[(kind, kind, None, pa.binary()) for kind in ("binary", "varbinary", "blob", "longblob", "bit")],
        *[(kind, kind, None, pa.binary()) for kind in ("geometry", "point", "multipolygon", "geometrycollection")],
        ("varchar", "varchar(9)", "binary", pa.binary()),
        ("json", "json", None, pa.string()),
        ("vector", "vector(3)", None, pa.binary()),
    ],
)
def test_known_types(kind: str, definition: str, charset: str | None, expected: pa.DataType) -> None:
    members = ("a",) if kind in ("enum", "set") else ()
    assert arrow_type(Column("c", kind, definition, charset=charset, members=members)) == expected


def test_other_types_are_refused_by_name() -> None:
    with pytest.raises(BinlogError, match="xmltype") as caught:
        arrow_type(Column("c", "xmltype", "xmltype"))
    assert caught.value.code == "BINLOG-020"


def test_unknown_charsets_are_refused_by_name() -> None:
    with pytest.raises(BinlogError, match="utf9"):
        arrow_type(Column("c", "text", "text", charset="utf9"))
