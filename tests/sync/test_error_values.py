"""The error value of an ENUM arrives as it is, and lets nothing else pass that a strict session would refuse."""

from __future__ import annotations

import pytest

from carried import Way
from error_values import TABLES, carry_error_values
from unshard.errors import UnshardError
from unshard.testing.servers import MariadbServer

pytestmark = pytest.mark.server
WAYS = (Way(), Way(budget=1), Way(multiple_rows=False), Way(compact=False, twice=True), Way(exchange="shuffled"))


def test_error_values_of_enums(source_server: MariadbServer, target_server: MariadbServer, schema: str) -> None:
    carrier = carry_error_values(source_server, target_server, schema, WAYS)
    target_server.run(
        *(f"DELETE FROM {schema}.{name}" for name in TABLES),
        f"ALTER TABLE {schema}.keyed MODIFY w VARCHAR(3) CHECK (w <> 'zz')",
    )
    source_server.run(f"INSERT INTO {schema}.keyed VALUES (9, 'a', 'x', 'zz')")
    with pytest.raises(UnshardError, match="SYNC-004"):
        carrier.carry(Way(compact=False, budget=1))
    carrier.close()


def test_what_else_a_strict_session_refuses_is_refused(
    source_server: MariadbServer, target_server: MariadbServer, schema: str
) -> None:
    """Both in one list of rows: the first is an error value, the second too large for the target."""
    carrier = carry_error_values(source_server, target_server, schema, ())
    target_server.run(f"ALTER TABLE {schema}.bare MODIFY id TINYINT")
    source_server.run(
        "SET sql_mode = ''",
        f"INSERT INTO {schema}.bare VALUES (1, 'no', 'a'), (1000, 'a', 'b')",
    )
    with pytest.raises(UnshardError, match="SYNC-004"):
        carrier.carry(Way())
    assert target_server.query(f"SELECT COUNT(*) FROM {schema}.bare WHERE id = 127") == [(0,)]
    carrier.close()
