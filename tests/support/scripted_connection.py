"""A connection to a server that is not there: a function answers its statements."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

Rows = list[tuple[Any, ...]]


class ScriptedConnection:
    """Its own cursor. `answer` returns the rows of a statement, or raises; `statements` are all that it was sent."""

    def __init__(self, answer: Callable[[str], Rows]) -> None:
        self.answer = answer
        self.statements: list[str] = []
        self.rows: Rows = []

    def cursor(self) -> ScriptedConnection:
        return self

    def __enter__(self) -> ScriptedConnection:
        return self

    def __exit__(self, *_: object) -> None:
        pass

    def execute(self, statement: str, values: object = None) -> None:
        self.statements.append(statement)
        self.rows = self.answer(statement)

    def fetchall(self) -> Rows:
        return self.rows


def located(commits: int, file: str, offset: int) -> Rows:
    """The status variables of a snapshot as MariaDB answers them; no binlog's without a file."""
    place: Rows = [("Binlog_snapshot_file", file), ("Binlog_snapshot_position", str(offset))]
    return [("Com_xa_commit", str(commits)), *(place if file else [])]


def logged(*offsets: int) -> Rows:
    """SHOW BINLOG EVENTS of transactions, each of them a group, that end at these offsets."""
    begins = ("b.000001", 0, "Gtid", 1, 0, "BEGIN GTID 0-1-1 cid={}")
    return [
        event
        for offset in offsets
        for event in ((*begins[:4], offset - 1, begins[5].format(offset)), ("b.000001", 0, "Xid", 1, offset, "COMMIT"))
    ]


def first_match(statement: str, answers: dict[str, Callable[[], Rows]]) -> Rows:
    """The answer to the statement that begins as its key does; nothing for another one."""
    return next((answer() for head, answer in answers.items() if statement.startswith(head)), [])
