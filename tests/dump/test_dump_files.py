"""Names of dump files and durable writing."""

from __future__ import annotations

from pathlib import Path

import pytest

from unshard.dump.durable import write_once
from unshard.dump.files import checksum, data_name, escape_name, table_schema_name, unescape_name
from unshard.model.table import TableName


@pytest.mark.parametrize(
    ("name", "escaped"),
    [
        ("orders", "orders"),
        ("a.b", "a%2Eb"),
        ("a/b", "a%2Fb"),
        ("50%", "50%25"),
        ("x-schema", "x%2Dschema"),
        ("x-SCHEMA", "x%2DSCHEMA"),
        ("x-y", "x-y"),
        ("größe", "größe"),
    ],
)
def test_a_name_is_escaped_as_dumpling_does_and_comes_back(name: str, escaped: str) -> None:
    assert escape_name(name) == escaped
    assert unescape_name(escaped) == name


def test_file_names_follow_mydumper() -> None:
    table = TableName("shop", "order.items")
    assert data_name(table, 7, "parquet") == "shop.order%2Eitems.00007.parquet"
    assert table_schema_name(table) == "shop.order%2Eitems-schema.sql"


def test_only_the_first_writer_of_a_record_counts(tmp_path: Path) -> None:
    path = tmp_path / "record.json"
    assert write_once(path, {"by": 1})
    assert not write_once(path, {"by": 2})
    assert path.read_text() == '{"by": 1}'
    assert list(tmp_path.iterdir()) == [path]


def test_the_checksum_sees_one_changed_byte(tmp_path: Path) -> None:
    path = tmp_path / "data"
    path.write_bytes(b"abc")
    before = checksum(path)
    path.write_bytes(b"abd")
    assert checksum(path) != before
