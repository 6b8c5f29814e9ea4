from __future__ import annotations

import pytest
from made_events import File, refusal, take

from unshard.binlog.transaction_range import BudgetReached


@pytest.mark.parametrize("text", ["ROLLBACK", "ROLLBACK TO `a`"])
def test_a_partly_rolled_back_transaction_stops_the_walk(text: str) -> None:
    file = File()
    file.gtid(2)
    file.table_map(table=b"b")
    file.rows()
    file.query(text)
    assert refusal(file).code == "BINLOG-007"


@pytest.mark.parametrize(
    ("code", "name"),
    [
        (26, "INCIDENT"), (27, "HEARTBEAT"),
        (18, "EXECUTE_LOAD_QUERY"), (164, "START_ENCRYPTION"),
        (20, "WRITE_ROWS_V0"), (99, "unknown code 99"),
    ],
)  # fmt: skip
def test_refused_events_are_named(code: int, name: str) -> None:
    file = File()
    at = file.event(code, bytes(30))
    error = refusal(file)
    assert error.code == "BINLOG-004"
    assert name in error.message
    assert error.hint
    assert error.where.position == f"mysql-bin.000001:{at}"
    assert error.where.source == "s1"


def test_transactions_before_a_fault_come_first() -> None:
    file = File()
    file.transaction(1)
    at = file.event(26)
    log_range = take(file)
    assert (log_range.end, log_range.transactions, log_range.stop) == (at, 1, BudgetReached())
    assert refusal(file, at).code == "BINLOG-004"


@pytest.mark.parametrize(
    "sql", ["insert into t values (1)", "/* app */ UPDATE t SET a=1", "(select f())", "LOAD DATA x"]
)
def test_changes_by_statement_are_refused(sql: str) -> None:
    file = File()
    file.gtid(1)
    file.query(sql)
    error = refusal(file)
    assert (error.code, error.values["statement"]) == ("BINLOG-005", sql)
    assert "binlog_format=ROW" in error.hint


@pytest.mark.parametrize(
    "sql",
    [
        "DELETE FROM `s`.`mem` WHERE a = 1",
        "DELETE FROM `mem`",
        "DELETE FROM `s`.`mem` LIMIT 1",
        "DELETE FROM `s`.`m`, t",
    ],
)
def test_deletes_that_no_server_logs_of_itself_are_refused(sql: str) -> None:
    file = File()
    file.gtid(1, flags=1)
    file.query(sql)
    assert refusal(file).code == "BINLOG-005"


@pytest.mark.parametrize("mysql", [True, False])
def test_a_delete_of_all_rows_in_a_transaction_is_refused(mysql: bool) -> None:
    """That one is a session's own, in statement format."""
    file = File()
    if mysql:
        file.mysql_gtid(bytes(16), 1)
        file.query("BEGIN")
    else:
        file.gtid(1)
    file.query("DELETE FROM `s`.`mem`")
    file.query("COMMIT")
    assert refusal(file).code == "BINLOG-005"


def test_events_out_of_order_are_refused() -> None:
    rows_first = File()
    rows_first.rows()
    unclosed = File()
    unclosed.gtid(1)
    unclosed.table_map()
    unclosed.rows()
    unclosed.gtid(2)
    outside = File()
    outside.event(161, b"")
    outside.table_map()
    ended = File()
    ended.gtid(1)
    ended.rotate()
    for file in (rows_first, unclosed, outside, ended):
        assert refusal(file).code == "BINLOG-006"
