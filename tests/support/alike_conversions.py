"""Types of columns with odd values of each, for conversions that a source and TiDB make alike."""

from __future__ import annotations

_INTEGERS = [
    "0", "1", "-1", "7", "-128", "128", "255", "256", "1901", "2155", "32767", "-32768", "65535", "8388607",
    "16777217", "2147483647", "-2147483648", "4294967295", "9007199254740993", "9223372036854775807",
    "-9223372036854775808", "18446744073709551615",
]  # fmt: skip
_REALS = [
    "0", "1", "-1", "0.1", "-0.1", "1.5", "2.5", "-2.5", "0.5", "1.005", "3.14159274", "-99999999.99", "1e10",
    "1e15", "1e16", "123456789", "1e-5", "1e-10", "1e20", "1e38", "16777217", "12.3456",
    "99999999999999999999.9999999999",
]  # fmt: skip
_DATES = [
    f"'{text}'"
    for text in (
        "0000-00-00 00:00:00", "1970-01-01 00:00:01", "1970-01-02 00:00:00", "2024-02-29 10:11:12", "1000-01-01",
        "2024-02-29 23:59:59.999999", "9999-12-31 23:59:58", "2000-12-31 12:00:00.5", "2037-06-30 23:59:59.4",
        "2024-02-30 00:00:00", "2024-00-00 00:00:00",
    )
]  # fmt: skip
_TIMES = [f"'{text}'" for text in ("0:0:0", "10:11:12.5", "-10:11:12.999999", "838:59:59", "-838:59:59", "24:00:00")]
_TEXTS = [
    "''", "' '", "'a'", "'A'", "'a '", "'  a'", "'é'", "'ß€'", "'😀'", "'0'", "'007'", "'1e3'", "'12abc'", "'x,y'",
    "'2024-02-29'", "'[1, 2]'", "'null'", "REPEAT('z', 60)", "REPEAT('é', 60)", "REPEAT('€', 85)", "'a\\0b'", "'\\t'",
]  # fmt: skip
_BYTES = ["''", "'a'", "'a '", "x'00'", "x'E9'", "x'C3A9'", "x'6100'", "x'FF00FF'", "'12'", "REPEAT(x'FE', 16)"]
_MEMBERS = ["'x'", "'y'", "'é'", "'1'", "''", "'x,1'", "'y,x'", "NULL"]

_OF_NAME = {
    **dict.fromkeys(("TINYINT", "SMALLINT", "MEDIUMINT", "INT", "BIGINT"), _INTEGERS),
    "YEAR": ["0", "1901", "2024", "2155", "70", "69"],
    "BIT": ["b'0'", "b'1'", "x'4142'", "x'FFFF'", "x'FFFFFFFFFFFFFFFF'"],
    **dict.fromkeys(("DECIMAL", "FLOAT", "DOUBLE"), _REALS),
    **dict.fromkeys(("DATE", "DATETIME", "TIMESTAMP"), _DATES),
    "TIME": _TIMES,
    **dict.fromkeys(("CHAR", "VARCHAR", "TINYTEXT", "TEXT", "MEDIUMTEXT", "LONGTEXT"), _TEXTS),
    **dict.fromkeys(("BINARY", "VARBINARY", "TINYBLOB", "BLOB", "LONGBLOB"), _BYTES),
    **dict.fromkeys(("ENUM", "SET"), _MEMBERS),
}

KINDS = [
    "TINYINT", "TINYINT UNSIGNED", "SMALLINT", "SMALLINT UNSIGNED", "MEDIUMINT", "INT", "INT UNSIGNED", "BIGINT",
    "BIGINT UNSIGNED", "INT(6) UNSIGNED ZEROFILL", "YEAR", "BIT(1)", "BIT(16)", "BIT(64)", "DECIMAL(10,2)",
    "DECIMAL(12,4)", "DECIMAL(5,0)", "DECIMAL(65,30)", "DECIMAL(10,2) UNSIGNED", "DECIMAL(8,2) UNSIGNED ZEROFILL",
    "FLOAT", "DOUBLE", "FLOAT(7,2)", "DATE", "DATETIME", "DATETIME(3)", "DATETIME(6)", "TIMESTAMP NULL",
    "TIMESTAMP(3) NULL", "TIMESTAMP(6) NULL", "TIME", "TIME(3)", "TIME(6)", "CHAR(5)", "CHAR(60)",
    "CHAR(60) CHARACTER SET latin1", "VARCHAR(5)", "VARCHAR(60)", "VARCHAR(85)", "VARCHAR(60) CHARACTER SET ascii",
    "VARCHAR(60) CHARACTER SET latin1", "VARCHAR(60) CHARACTER SET utf8mb3",
    "VARCHAR(60) CHARACTER SET utf8mb4 COLLATE utf8mb4_bin", "VARCHAR(60) CHARACTER SET sjis", "TINYTEXT",
    "TINYTEXT CHARACTER SET latin1", "TEXT", "TEXT CHARACTER SET latin1", "MEDIUMTEXT", "LONGTEXT", "BINARY(16)",
    "BINARY(60)", "VARBINARY(5)", "VARBINARY(60)", "TINYBLOB", "BLOB", "LONGBLOB", "ENUM('x','y','1')",
    "ENUM('y','x','1')", "ENUM('x','y','1','é')", "SET('x','y','1')", "SET('1','y','x')", "SET('x','y','1','é')",
]  # fmt: skip
"""Types of MySQL and MariaDB."""


def values_of(kind: str) -> list[str]:
    """Return values for a column of the type, as literals; a server may cut or refuse some of them."""
    return [*_OF_NAME[kind.split("(")[0].split()[0]], "NULL"]
