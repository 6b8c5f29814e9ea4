"""What damaged files brought to light (`binlog_fuzz`), each as small as it can be."""

from __future__ import annotations

import pytest
from made_events import WHERE, File

from unshard.binlog.described import describe_table
from unshard.binlog.headers import read_format
from unshard.binlog.index import walk
from unshard.binlog.layout import plan_layouts
from unshard.binlog.table_map import parse_table_map
from unshard.errors import BinlogError, Where


def table_map(columns: str, optional: str) -> bytes:
    return bytes.fromhex("0100 01 73 00 01 74 00" + columns + optional)


@pytest.mark.parametrize("number", [0, 2**63])
def test_a_gtid_without_a_number_is_damage(number: int) -> None:
    file = File(version=b"9.7.0")
    file.mysql_gtid(bytes(16), number)
    file.query("BEGIN")
    file.xid()
    data = bytes(file.data)
    with pytest.raises(BinlogError, match="BINLOG-002"):
        walk(data, read_format(data).end, size=len(data), budget=1, checksum=True, where=WHERE)


def test_a_damaged_format_event_has_a_position() -> None:
    data = File().data
    data[60] ^= 1
    with pytest.raises(BinlogError) as caught:
        read_format(bytes(data), Where(file="/relay/mysql-bin.000007"))
    assert caught.value.where.position == "mysql-bin.000007:4"


@pytest.mark.parametrize("optional", ["02 03 fcff7f", "0a 03 fcff7f 06 03 01 01 61"], ids=["text", "enum"])
def test_an_unknown_collation_is_named(optional: str) -> None:
    """VARCHAR(9), or ENUM('a'), of collation 0x7fff: its bytes could be any text."""
    column = "01 0f 02 0900 01" if optional.startswith("02") else "01 fe 02 f701 01"
    with pytest.raises(BinlogError, match=r"BINLOG-043.*column @1.*32767"):
        describe_table(parse_table_map(table_map(column, optional), mariadb=False))


def test_members_that_are_no_text_stay_numbers() -> None:
    """ENUM with the member 0xff, of utf8mb4."""
    mapped = parse_table_map(table_map("01 fe 02 f701 01", "0a 01 2d 06 03 01 01 ff"), mariadb=False)
    (column,) = describe_table(mapped).columns
    assert column.members == ()
    (layout,) = plan_layouts(describe_table(mapped), mapped)
    assert layout.reader == "number"


def test_a_vector_counts_among_the_columns_with_a_collation() -> None:
    """VECTOR, VARCHAR, VARBINARY of MySQL 9.7: binary by default, the second of the three utf8mb4_0900_ai_ci."""
    mapped = parse_table_map(table_map("03 f2 0f 0f 05 04 7800 2c01 07", "02 05 3f 01 fcff00"), mariadb=False)
    vector, name, raw = describe_table(mapped).columns
    assert (vector.type, name.charset, raw.type) == ("vector", "utf8mb4", "varbinary")
