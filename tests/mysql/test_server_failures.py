"""Which of a server's errors are worth another try."""

from __future__ import annotations

import MySQLdb
import pytest

from unshard.errors import SourceError
from unshard.mysql.connection import Endpoint, server_error
from unshard.mysql.failures import TRANSIENT, Failure, ends_connection, failure_of

CANCELLED = "Your query has been cancelled due to exceeding the allowed memory limit"
ENDPOINT = Endpoint("127.0.0.1", 3306, "root")


def error(number: int, text: str = "said the server") -> MySQLdb.Error:
    return MySQLdb.OperationalError(number, text)


@pytest.mark.parametrize(
    ("numbers", "failure", "code"),
    [
        ((2002, 2003, 1040, 1203, 1226), Failure.UNREACHABLE, "TARGET-001"),
        ((1044, 1045, 1698), Failure.REFUSED, "TARGET-002"),
        ((2006, 2013, 1053, 1317, 1927, 4031), Failure.LOST, "TARGET-003"),
        ((1205, 1213, 1969, 3101), Failure.BUSY, "TARGET-005"),
        (
            (8002, 8005, 8022, 8027, 8028, 9001, 9002, 9003, 9004, 9005, 9006, 9007, 8229, 8245),
            Failure.BUSY,
            "TARGET-005",
        ),
        ((1792, 1836), Failure.READ_ONLY, "TARGET-006"),
        ((1153, 1197, 8004, 8025), Failure.TOO_LARGE, "TARGET-007"),
        ((8176, 8180), Failure.SHORT_OF_MEMORY, "TARGET-009"),
        ((2026, 3159), Failure.TLS, "TARGET-008"),
        ((1062, 1064, 1146, 1406, 3819, 8121), Failure.OTHER, "TARGET-004"),
    ],
)
def test_each_number_has_its_kind(numbers: tuple[int, ...], failure: Failure, code: str) -> None:
    for number in numbers:
        assert failure_of(error(number)) is failure
        told = server_error(error(number), ENDPOINT, "target", "INSERT")
        assert (told.code, told.retryable) == (code, failure in TRANSIENT)


@pytest.mark.parametrize(
    ("number", "text", "failure"),
    [
        (1290, "The MariaDB server is running with the --read-only option", Failure.READ_ONLY),
        (1290, "The MySQL server is running with the --super-read-only option", Failure.READ_ONLY),
        (1290, "The MySQL server is running with the --secure-file-priv option", Failure.OTHER),
        (1105, "Out Of Memory Quota![conn_id=1]", Failure.TOO_LARGE),
        (1105, f"{CANCELLED} for a single SQL query. Please try narrowing your query scope", Failure.TOO_LARGE),
        (1105, f"{CANCELLED} for the tidb-server instance and this query uses the most", Failure.SHORT_OF_MEMORY),
        (1105, "tikv aborts txn: Error(Txn(...))", Failure.BUSY),
        (1105, "unknown column", Failure.OTHER),
    ],
)
def test_the_text_decides_where_a_number_has_two_meanings(number: int, text: str, failure: Failure) -> None:
    assert failure_of(error(number, text)) is failure


def test_a_deadlock_leaves_the_connection_and_a_kill_does_not() -> None:
    assert not ends_connection(error(1213))
    assert ends_connection(error(1927))
    assert ends_connection(error(2006))


def test_a_source_that_is_read_only_refuses_for_good() -> None:
    told = server_error(error(1836), ENDPOINT, "source", "FLUSH TABLES")
    assert isinstance(told, SourceError)
    assert (told.code, told.retryable) == ("SOURCE-004", False)
