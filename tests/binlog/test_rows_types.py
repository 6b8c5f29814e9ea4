"""Every everyday type, with its extremes: what is decoded from the binlog is what the server selects."""

from __future__ import annotations

import struct

import pytest
from captured import capture, rows_of

from unshard.model.change import Op
from unshard.testing.mariadb_server import MariadbServer

pytestmark = pytest.mark.server

NUMBERS = {
    "tinyint": ("-128", "127", "0", "NULL"),
    "tinyint unsigned": ("0", "255"),
    "smallint": ("-32768", "32767", "-1"),
    "smallint unsigned": ("0", "65535"),
    "mediumint": ("-8388608", "8388607", "-1", "NULL"),
    "mediumint unsigned": ("0", "16777215"),
    "int": ("-2147483648", "2147483647", "-1"),
    "int unsigned zerofill": ("0", "4294967295", "7"),
    "bigint": ("-9223372036854775808", "9223372036854775807", "-1"),
    "bigint unsigned": ("0", "18446744073709551615", "9223372036854775808"),
    "year": ("0", "1901", "2155", "2024"),
}
REALS = {
    "float": ("0", "-0e0", "1.1", "-3.402823466e38", "3.402823466e38", "1.175494351e-38", "16777217", "0.1", "NULL"),
    "float(7,3)": ("1.5", "-9999.999"),
    "double": ("0", "-0e0", "0.1", "-1.7976931348623157e308", "2.2250738585072014e-308", "1e16", "123456789.123456789"),
}
TEXTS = {
    "decimal(10,2)": ("0", "-0.01", "99999999.99", "-99999999.99", "1", "NULL"),
    "decimal(65,30)": ("-" + "9" * 35 + "." + "9" * 30, "1e-30", "0", "123456789123456789.000000001"),
    "decimal(9)": ("999999999", "-1", "0"),
    "decimal(3,3)": ("0.999", "-0.001", "0"),
    "decimal(20,9) unsigned": ("0.000000001", "12345678901.123456789"),
    "decimal(1)": ("9", "-9", "0"),
    "date": ("'0000-00-00'", "'2024-00-00'", "'1000-01-01'", "'9999-12-31'", "'2024-02-30'", "NULL"),
    "time": ("'-838:59:59'", "'838:59:59'", "'00:00:00'", "'-00:00:01'", "'12:34:56'"),
    "time(1)": ("'-00:00:00.1'", "'-00:00:01.0'", "'-10:00:59.9'", "'00:00:00.9'"),
    "time(2)": ("'-00:00:00.01'", "'-00:01:00.99'", "'23:59:59.99'"),
    "time(3)": ("'-00:00:00.001'", "'-838:59:59.999'", "'838:59:59.999'"),
    "time(4)": ("'-00:00:00.0001'", "'01:00:00.1234'", "'-01:00:00'"),
    "time(5)": ("'-00:00:00.00001'", "'01:00:00.12345'"),
    "time(6)": ("'-00:00:00.000001'", "'-838:59:59.999999'", "'838:59:59.999999'", "NULL"),
    "datetime": ("'0000-00-00 00:00:00'", "'2024-00-31 23:59:59'", "'9999-12-31 23:59:59'", "'1000-01-01 00:00:00'"),
    "datetime(1)": ("'2024-02-29 12:00:00.9'", "'2024-02-29 12:00:00'"),
    "datetime(3)": ("'2024-02-29 12:00:00.999'", "'0000-00-00 00:00:00.000'"),
    "datetime(6)": ("'9999-12-31 23:59:59.999999'", "'2024-02-29 12:00:00.000001'", "NULL"),
    "timestamp null": ("'0000-00-00 00:00:00'", "'1970-01-01 00:00:01'", "'2038-01-19 03:14:07'", "NULL"),
    "timestamp(2) null": ("'2000-02-29 12:00:00.01'", "'1999-12-31 23:59:59.99'"),
    "timestamp(6) null": ("'2024-02-29 00:00:00.000001'", "'2024-03-01 00:00:00.5'", "'2001-01-01 00:00:00'"),
    "char(10)": ("''", "'a'", "'ünïcödé'", "'  x  '", "'😀'", "NULL"),
    "char(255)": ("''", "repeat('é', 255)", "repeat('😀', 255)"),
    "char(0)": ("''", "NULL"),
    "varchar(10)": ("''", "'a  '", "'😀😀'"),
    "varchar(300)": ("repeat('x', 300)", "''"),
    "char(10) character set latin1": ("'caf\u00e9'", "'\u20ac'", "x'818d8f909d'", "''"),
    "varchar(300) character set latin1": ("repeat('\u00e9', 300)", "'plain'"),
    "varchar(20) character set cp1251": ("'Привет'", "''"),
    "varchar(20) character set koi8r": ("'Привет'",),
    "varchar(20) character set gbk": ("'中文'", "''", "NULL"),
    "char(20) character set sjis": ("'日本'", "'｡'"),
    "varchar(20) character set ucs2": ("'aé中'", "''"),
    "char(20) character set utf16": ("'a😀'", "''"),
    "varchar(20) character set utf32": ("'a😀'",),
    "varchar(20) character set big5": ("'中文'",),
    "varchar(20) character set ujis": ("'日本'",),
    "varchar(20) character set euckr": ("'한국'",),
    "varchar(20) character set utf8mb3": ("'é中'",),
    "varchar(20) character set ascii": ("'plain'",),
    "tinytext": ("''", "repeat('x', 255)"),
    "text": ("'é'", "repeat('ab', 30000)", "NULL"),
    "text character set latin1": ("'\u00e9'",),
    "mediumtext": ("repeat('x', 70000)",),
    "longtext": ("'long'",),
    "json": ("""'{"a": [1, null, "é"]}'""",),
    "enum('a','b''c','','ü')": ("'a'", "'b''c'", "'ü'", "3", "NULL"),
    "enum('a','b')": ("'a'", "0", "'b'", "'unknown'"),
    "enum('caf\u00e9','x') character set latin1": ("1", "2"),
    "set('a','b','c')": ("''", "'a,c'", "'a,b,c'", "NULL"),
    "set({})".format(",".join(f"'m{number}'" for number in range(64))): ("'m0,m63'", "'m31'", "''", "~0"),
    "set({})".format(",".join(f"'m{number}'" for number in range(33))): ("'m32'", "'m0'"),
}
BYTES = {
    "binary(4)": ("x'00'", "x'ff000000'", "x'01020304'", "''", "NULL"),
    "binary(255)": ("x'01'", "repeat(x'ff', 255)"),
    "varbinary(4)": ("x'0000'", "''", "x'ff'"),
    "varbinary(300)": ("repeat(x'00', 300)",),
    "tinyblob": ("x'00ff'", "''"),
    "blob": ("repeat(x'00ff', 30000)", "NULL"),
    "mediumblob": ("repeat(x'27', 70000)",),
    "longblob": ("x'5c27'",),
    "varchar(10) character set binary": ("x'ff'",),
    "bit(1)": ("b'0'", "b'1'", "NULL"),
    "bit(9)": ("b'100000001'", "0"),
    "bit(64)": ("~0", "1", "0"),
    "bit(8)": ("255", "0"),
    "geometry": ("point(1, -2)", "NULL", "st_geomfromtext('polygon((0 0,1 0,1 1,0 0))', 4326)"),
    "point": ("point(3, 4)",),
}
EVERYTHING = {**NUMBERS, **REALS, **TEXTS, **BYTES}


def selected(server: MariadbServer, schema: str, definition: str, row_id: int) -> object:
    """The value as the server tells it, in the form that Arrow has it."""
    column = "v"
    if definition in NUMBERS or definition in REALS:
        column = "v + 0e0" if definition in REALS else "v + 0"
    elif definition.startswith("bit"):
        width = (int(definition[4:-1]) + 7) // 8
        column = f"unhex(lpad(hex(v), {2 * width}, '0'))"
    elif definition in BYTES:
        column = "cast(v as binary)"
    elif "char" not in definition:
        column = "cast(v as char)"
    ((value,),) = server.query(f"SELECT {column} FROM {schema}.t WHERE id = {row_id}")
    if definition in NUMBERS:
        return None if value is None else int(value)
    return value


@pytest.mark.parametrize("definition", EVERYTHING)
def test_values_are_those_of_the_server(source_server: MariadbServer, schema: str, definition: str) -> None:
    values = EVERYTHING[definition]
    captured = capture(
        source_server,
        schema,
        ["SET sql_mode = ''", f"CREATE TABLE t (id int PRIMARY KEY, v {definition})"],
        [f"INSERT INTO t VALUES ({number}, {value})" for number, value in enumerate(values)],
    )
    decoded = [row[1] for row in rows_of(captured.batch(), Op.INSERT)]
    expected = [selected(source_server, schema, definition, number) for number in range(len(values))]
    source_server.run(f"DROP DATABASE {schema}")
    if definition in REALS:
        assert [value if value is None else struct.pack("<d", value) for value in decoded] == [
            value if value is None else struct.pack("<d", value) for value in expected
        ]
    else:
        assert decoded == expected
