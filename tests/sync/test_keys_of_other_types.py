"""Keys whose columns are of another type in the target: every row is found, by switches on and off."""

from __future__ import annotations

import pytest

from support.log_to_target import Carrier, Way
from unshard.errors import UnshardError
from unshard.testing.mariadb_server import MariadbServer

VALUES = {
    "FLOAT": ("DOUBLE", "0.1, 16777217, -2.5e-5, 3.4e38, 1e-45, -0.0, 123456.789"),
    "DOUBLE": ("DOUBLE", "0.1, 1e300, 5e-324, -0.0, 9007199254740993, 0.3"),
    "BIT(9)": ("BIT(20)", "b'0', b'1', b'101010101', b'111111111'"),
    "INT": ("BIGINT UNSIGNED", "0, 1, 7, 2147483647"),
    "CHAR(9) COLLATE utf8mb4_bin": ("VARCHAR(20) COLLATE utf8mb4_nopad_bin", "'', 'a', 'A', 'é ', ' b'"),
    "VARCHAR(9) COLLATE utf8mb4_nopad_bin": ("TEXT COLLATE utf8mb4_nopad_bin", "'', 'a', 'a ', '\\0'"),
    "BINARY(3)": ("VARBINARY(9)", "x'', x'61', x'612000', x'ff'"),
    "VARBINARY(3)": ("VARBINARY(9)", "x'', x'61', x'6120', x'27'"),
    "DATETIME": ("DATETIME(6)", "'2020-02-29 01:02:03', '0000-00-00', '2020-00-00'"),
    "TIME(1)": ("TIME(3)", "'-00:00:00.1', '00:00:00', '838:59:58.9'"),
    "DECIMAL(5,2)": ("DECIMAL(12,4)", "0, 1.5, -999.99"),
    "YEAR": ("YEAR", "0, 1901, 2155"),
    "ENUM('b','a')": ("ENUM('x','a','b')", "'a', 'b'"),
    "SET('b','a')": ("SET('x','b','y','a')", "'', 'a', 'b,a'"),
}
KEYS = ("PRIMARY KEY (k{prefix})", "UNIQUE KEY (k{prefix}), UNIQUE KEY (v)", "PRIMARY KEY (w, k{prefix})", "KEY (v)")
NAMES = [f"t{number}_{place}" for number in range(len(VALUES)) for place in range(len(KEYS))]


def test_rows_are_found_by_keys_of_wider_types(
    source_server: MariadbServer, target_server: MariadbServer, schema: str
) -> None:
    for server in (source_server, target_server):
        server.run(f"CREATE DATABASE {schema}")
        for number, (kind, (wider, _)) in enumerate(VALUES.items()):
            here = kind if server is source_server else wider
            for place, key in enumerate(KEYS):
                keys = key.format(prefix="(9)" if here.startswith("TEXT") else "")
                server.run(f"CREATE TABLE {schema}.t{number}_{place} (k {here} NOT NULL, w INT, v INT, {keys})")
    carrier = Carrier(source_server, target_server, schema)
    for number, (_, values) in enumerate(VALUES.values()):
        rows = ", ".join(f"({value}, 1, {place})" for place, value in enumerate(values.split(", ")))
        for place in range(len(KEYS)):
            name = f"{schema}.t{number}_{place}"
            source_server.run(
                "SET sql_mode = 'ALLOW_INVALID_DATES,NO_AUTO_VALUE_ON_ZERO'",
                f"INSERT INTO {name} VALUES {rows}",
                f"UPDATE {name} SET w = 2 WHERE v > 0",
                f"DELETE FROM {name} WHERE v = 1",
                f"UPDATE {name} SET v = v + 100",
            )
    for way in (Way(), Way(multiple_rows=False, compact=False), Way(again=True)):
        target_server.run(*(f"DELETE FROM {schema}.{name}" for name in NAMES))
        carrier.carry(way)
        for name in NAMES:
            query = f"SELECT v, w FROM {schema}.{name} ORDER BY v"
            assert target_server.query(query) == source_server.query(query), (name, way)
    carrier.close()


@pytest.mark.parametrize(
    ("here", "there"),
    [
        ("CHAR(3)", "BINARY(3)"),
        ("INT", "DECIMAL(12,0)"),
        ("ENUM('1','b')", "VARCHAR(3)"),
        ("DECIMAL(5,2)", "DOUBLE"),
        ("SET('b','1')", "SET('1','b')"),
    ],
)
def test_types_that_compare_in_other_ways_are_refused(
    here: str, there: str, source_server: MariadbServer, target_server: MariadbServer, schema: str
) -> None:
    for server, kind in ((source_server, here), (target_server, there)):
        server.run(f"CREATE DATABASE {schema}", f"CREATE TABLE {schema}.t (k {kind} PRIMARY KEY, v INT)")
    carrier = Carrier(source_server, target_server, schema)
    source_server.run(f"INSERT INTO {schema}.t VALUES ('1', 1)")
    with pytest.raises(UnshardError, match="SYNC-007"):
        carrier.carry(Way())
    carrier.close()
