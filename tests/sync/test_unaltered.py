"""What a target would store as another value without an error, or twice, stops the task before it is there."""

from __future__ import annotations

import pytest

from support.log_to_target import Carrier, Way
from unshard.errors import UnshardError
from unshard.testing.mariadb_server import MariadbServer

pytestmark = pytest.mark.server

WAYS = (Way(), Way(multiple_rows=False, compact=False))
LENIENT = {"sql_mode": "NO_ENGINE_SUBSTITUTION", "unique_checks": "0", "sql_notes": "0", "max_error_count": "0"}
"""A session as a user may ask for it: DM's own examples set a sql_mode that is not strict."""

UPDATE, INSERT = "UPDATE {}.t SET d = {} WHERE id < 2", "INSERT INTO {}.t VALUES (2, 2, {}), (3, 3, {})"
ONE, TWO, NONE = "PRIMARY KEY (id)", "PRIMARY KEY (id), UNIQUE KEY (u)", "KEY (id)"
CASES = {
    "digits": (
        UPDATE,
        ONE,
        "DECIMAL(8,4)",
        "DECIMAL(8,2)",
        "1.2345",
        "SYNC-073",
        "1265: Data truncated for column 'd'",
    ),
    "digits, two keys": (UPDATE, TWO, "DECIMAL(8,4)", "DECIMAL(8,2)", "1.2345", "SYNC-073", "column 'd'"),
    "digits, no key": (UPDATE, NONE, "DECIMAL(8,4)", "DECIMAL(8,2)", "1.2345", "SYNC-073", "column 'd'"),
    "blanks": (INSERT, ONE, "VARCHAR(9)", "VARCHAR(3)", "'1      '", "SYNC-073", "1265: Data truncated for column 'd'"),
    "text": (
        INSERT,
        ONE,
        "TEXT",
        "TINYTEXT",
        "CONCAT(1, SPACE(300))",
        "SYNC-073",
        "1265: Data truncated for column 'd'",
    ),
    "length": (INSERT, ONE, "VARCHAR(9)", "VARCHAR(3)", "'1234'", "SYNC-004", "1406"),
    "range": (UPDATE, ONE, "INT", "TINYINT", "1000", "SYNC-004", "1264"),
}
ON_TIDB = {
    "digits": ("SYNC-073", "1.2345"),
    "digits, two keys": ("SYNC-073", "1.2345"),
    "digits, no key": ("SYNC-073", "1292: Truncated incorrect DECIMAL value: '1.2345'"),
    "text": ("SYNC-004", "1406: Data too long for column 'd'"),
}
"""The code and the words where TiDB has others."""


@pytest.mark.parametrize("case", CASES)
def test_a_value_that_a_column_has_no_room_for(
    case: str, source_server: MariadbServer, target_server: MariadbServer, schema: str
) -> None:
    """Nothing of its chunk is there; once there is room all of it arrives."""
    change, keys, wide, narrow, value, code, told = CASES[case]
    if target_server.product == "TiDB":
        code, told = ON_TIDB.get(case, (code, told))
    for server, column in ((source_server, wide), (target_server, narrow)):
        columns = f"(id INT NOT NULL, u INT, d {column}, {keys})"
        server.run(f"CREATE DATABASE {schema}", f"CREATE TABLE {schema}.t {columns}")
        server.run(f"INSERT INTO {schema}.t VALUES (0, 0, 1), (1, 1, 1)")
    before = target_server.query(f"SELECT * FROM {schema}.t ORDER BY id")
    carrier = Carrier(source_server, target_server, schema)
    carrier.endpoint = carrier.endpoint.with_session(**LENIENT)
    source_server.run(change.format(schema, value, value))
    for way in WAYS:
        with pytest.raises(UnshardError, match=code) as caught:
            carrier.carry(way)
        assert told in str(caught.value)
        assert f"{schema}.t" in str(caught.value)
        assert caught.value.values["seq"] is not None
        assert target_server.query(f"SELECT * FROM {schema}.t ORDER BY id") == before
    target_server.run(f"ALTER TABLE {schema}.t MODIFY d {wide}")
    carrier.carry(Way())
    query = f"SELECT * FROM {schema}.t ORDER BY id"
    assert target_server.query(query) == source_server.query(query) != before
    carrier.close()


def test_a_row_of_number_0_keeps_it(source_server: MariadbServer, target_server: MariadbServer, schema: str) -> None:
    for server in (source_server, target_server):
        server.run(f"CREATE DATABASE {schema}", f"CREATE TABLE {schema}.t (id INT AUTO_INCREMENT PRIMARY KEY, v INT)")
    carrier = Carrier(source_server, target_server, schema)
    carrier.endpoint = carrier.endpoint.with_session(**LENIENT)
    source_server.run("SET sql_mode = 'NO_AUTO_VALUE_ON_ZERO'", f"INSERT INTO {schema}.t VALUES (0, 1), (5, 1)")
    source_server.run(f"UPDATE {schema}.t SET v = 2")
    for way in (*WAYS, Way(again=True)):
        target_server.run(f"DELETE FROM {schema}.t")
        carrier.carry(way)
        assert target_server.query(f"SELECT * FROM {schema}.t ORDER BY id") == [(0, 2), (5, 2)]
    carrier.close()


REFUSED = {
    "NULL gets a number": ("n INT NULL, KEY (n)", "n INT AUTO_INCREMENT, KEY (n)", "NULL", "may be NULL in the source"),
    "NULL gets the time": ("n TIMESTAMP NULL", "n TIMESTAMP NOT NULL", "NULL", "makes a value of its own"),
    "a float is rounded": ("n FLOAT", "n FLOAT(7,2)", "1.2345", "column n is float, in the target float(7,2)"),
    "a double is rounded": ("n DOUBLE(9,3)", "n DOUBLE(9,2)", "1.234", "column n is double(9,3)"),
    "what fails would stay": ("n INT", "n INT) ENGINE=MyISAM ", "1", "engine MyISAM has no transactions"),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_a_target_changes_without_a_word_is_refused(
    case: str, source_server: MariadbServer, target_server: MariadbServer, schema: str
) -> None:
    here, there, value, told = REFUSED[case]
    for server, columns in ((source_server, here), (target_server, there)):
        end = "" if "ENGINE" in columns else ")"
        server.run(f"CREATE DATABASE {schema}", f"CREATE TABLE {schema}.t (id INT PRIMARY KEY, {columns}{end}")
    carrier = Carrier(source_server, target_server, schema)
    source_server.run(f"INSERT INTO {schema}.t VALUES (1, {value})")
    with pytest.raises(UnshardError, match="SYNC-007") as caught:
        carrier.carry(Way())
    assert told in str(caught.value)
    carrier.close()
