"""Files that real servers wrote, against what the servers' own tools say of them (`stored_cases.py` makes both)."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from typing import Any

import pytest
from stored_cases import CASES, STORED
from tool_values import same

from support.binlog_listing import listed
from unshard.binlog.headers import read_format
from unshard.binlog.index import walk
from unshard.binlog.listing import Shown
from unshard.binlog.row_changes import ABSENT, Change, RowChanges
from unshard.binlog.transaction_range import BudgetReached, EndOfData, Rotate, Stop
from unshard.errors import BinlogError, Where

NAMES = sorted(CASES)
UNPACKED = (166, 167, 168)
STATEMENTS = ("mariadb-statements", "mysql-statements")
"""Files whose rows were changed by statements, which the index refuses."""

ROWS_KNOWN = [name for name in NAMES if name != "mysql-partial-json"]
"""MySQL's tool prints the changes of a document (JSON_REPLACE …), we the document that they give."""


def told(name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((STORED / f"{name}.json").read_text(encoding="utf-8"))
    return found


def same_image(image: tuple[Any, ...] | None, printed: dict[str, str] | None, rows: RowChanges) -> bool:
    if image is None or printed is None:
        return image is None and printed is None
    numbers = [str(number) for number in range(1, len(image) + 1) if image[number - 1] is not ABSENT]
    return numbers == list(printed) and all(
        same(image[int(number) - 1], text, rows.columns[int(number) - 1]) for number, text in printed.items()
    )


@pytest.mark.parametrize("name", NAMES)
def test_events_are_where_the_servers_tool_finds_them(name: str) -> None:
    found = [shown.header for shown in listed(STORED / f"{name}.binlog") if shown.within is None]
    expected = told(name)["events"]
    if name == "mariadb-compressed":  # the tool shows rows as they are unpacked
        found = [replace(header, code=header.code - 143) if header.code in UNPACKED else header for header in found]
        expected = [[at, code, header.length] for (at, code, _), header in zip(expected, found, strict=True)]
    assert [[header.offset, header.code, header.length] for header in found] == expected


@pytest.mark.parametrize("name", NAMES)
def test_events_within_payloads_are_those_of_the_servers_tool(name: str) -> None:
    found = [shown for shown in listed(STORED / f"{name}.binlog") if shown.within is not None]
    assert [[shown.within, shown.header.code] for shown in found] == told(name)["inner"]


@pytest.mark.parametrize("name", ROWS_KNOWN)
def test_rows_are_those_of_the_servers_tool(name: str) -> None:
    expected = told(name)["rows"]
    found: list[tuple[Shown, RowChanges, Change]] = []
    for shown in listed(STORED / f"{name}.binlog"):
        assert shown.problem is None
        if shown.rows is not None:
            found += [(shown, shown.rows, change) for change in shown.rows]
    assert [[str(shown.tables[0]), shown.dm[0]] for shown, _, _ in found] == [row[:2] for row in expected]
    for (_, rows, change), (_, _, before, after) in zip(found, expected, strict=True):
        assert same_image(change.before, before, rows), (change.before, before)
        assert same_image(change.after, after, rows), (change.after, after)


@pytest.mark.parametrize("name", NAMES)
def test_the_origin_of_a_file_stands_beside_it(name: str) -> None:
    case = CASES[name]
    assert told(name)["case"] == json.loads(json.dumps(asdict(case)))
    assert case.server.split("-")[1] in told(name)["version"]


def test_no_file_is_without_a_case() -> None:
    assert {path.stem for path in STORED.iterdir()} == set(NAMES)
    assert sum(path.stat().st_size for path in STORED.glob("*.binlog")) < 100_000


def walked(name: str) -> tuple[int, Stop]:
    """How many row events the index finds, and where it stops. Raises BinlogError."""
    data = (STORED / f"{name}.binlog").read_bytes()
    checksum = read_format(data).checksum
    at, rows = 4, 0
    while True:
        log_range = walk(data, at, size=len(data), budget=1 << 20, checksum=checksum, where=Where(file=name))
        rows += log_range.row_events
        if isinstance(log_range.stop, EndOfData | Rotate):
            return rows, log_range.stop
        after = log_range.end if isinstance(log_range.stop, BudgetReached) else log_range.stop.end
        assert after > at
        at = after


@pytest.mark.parametrize("name", sorted(set(NAMES) - set(STATEMENTS)))
def test_the_index_takes_the_file_to_its_end(name: str) -> None:
    rows, stop = walked(name)
    assert isinstance(stop, Rotate)
    assert bool(rows) == bool(told(name)["rows"])


@pytest.mark.parametrize("name", STATEMENTS)
def test_the_index_refuses_rows_changed_by_a_statement(name: str) -> None:
    with pytest.raises(BinlogError) as raised:
        walked(name)
    assert raised.value.code == "BINLOG-005"


def test_changes_of_documents_give_whole_ones() -> None:
    rows = [shown.rows for shown in listed(STORED / "mysql-partial-json.binlog") if shown.rows is not None]
    documents = [json.loads(change.after[1]) for one in rows for change in one if change.after is not None]
    text = "a long enough text to be worth a diff"
    expected = [
        {"a": 1, "b": text, "c": [1, 2, 3]},
        {"a": 2, "b": text, "c": [1, 2, 3]},
        {"a": 2, "b": text, "c": [1, 3]},
    ]
    assert documents == expected
    printed = [after["2"] for _, kind, _, after in told("mysql-partial-json")["rows"] if kind == "update"]
    assert printed == ["JSON_REPLACE(@2, '$.a', 2)", "JSON_REMOVE(@2, '$.c[1]')"]
