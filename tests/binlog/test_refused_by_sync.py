"""Events that sync doesn't know or can't read: each is refused by name and place, none is skipped, nothing applied."""

from __future__ import annotations

import pickle
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from struct import pack

import pytest
from made_events import File
from made_logs import NAME, GrowingLog

from support.row_batches import Target
from unshard.binlog.events import REFUSED, event_of
from unshard.errors import BinlogError, UnshardError, error_from_dict
from unshard.model.position import Location, Position
from unshard.sync.batch.plan import BatchPlan, BatchShape, Range
from unshard.sync.source_log.reader import TransactionRows, next_work
from unshard.sync.steps.pipeline import run_share
from unshard.testing.mariadb_server import MariadbServer

pytestmark = pytest.mark.server


@pytest.fixture(scope="module")
def place(target_server: MariadbServer) -> Iterator[Target]:
    found = Target(target_server, "refused", {"t": "a INT"})
    yield found
    found.connection.close()


def begin(file: File, schema: bytes = b"refused") -> None:
    file.gtid(1)
    file.event(160, b"insert into t values (5)")
    file.table_map(schema)
    file.rows(last=False)


def rows(body: bytes) -> bytes:
    return pack("<IHH", 1, 0, 1) + body


def unknown_event(file: File) -> int:
    return file.event(99, b"who knows")


def unknown_type(file: File) -> int:
    head = pack("<IHH", 2, 0, 1) + b"\x07refused\0\x01t\0"
    at = file.event(19, head + b"\x01\x63\x00\x01")
    file.event(23, pack("<IHH", 2, 0, 1) + b"\x01\x01\x00\x05\0\0\0")
    return at


def more_columns(file: File) -> int:
    head = pack("<IHH", 2, 0, 1) + b"\x07refused\0\x01t\0"
    at = file.event(19, head + b"\x02\x03\x03\x00\x03")
    file.event(23, pack("<IHH", 2, 0, 1) + b"\x02\x03\x00\x05\0\0\0\x05\0\0\0")
    return at


CASES: dict[str, tuple[Callable[[File], int], str, str]] = {
    "an unknown event": (unknown_event, "BINLOG-004", "99"),
    "a type that no column has": (unknown_type, "BINLOG-022", "refused.t"),
    "more columns than the table": (more_columns, "BINLOG-022", "refused.t"),
    "a row cut short": (lambda f: f.event(23, rows(b"\x01\x01\x00\x05\0")), "BINLOG-021", "column a"),
    "a row and a half": (lambda f: f.event(23, rows(b"\x01\x01\x00\x05\0\0\0\x00\x05")), "BINLOG-021", "column a"),
    "another column count": (lambda f: f.event(23, rows(b"\x02\x03\x00\x05\0\0\0\x05\0\0\0")), "BINLOG-023", ""),
    "a header cut short": (lambda f: f.event(23, b"\x01\0\0"), "BINLOG-023", ""),
    "a table that is not mapped": (
        lambda f: f.event(23, pack("<IHH", 9, 0, 1) + b"\x01\x01\x00\x05\0\0\0"),
        "BINLOG-026",
        "",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_it_is_refused_by_name_and_place(place: Target, case: str, tmp_path: Path) -> None:
    bad, code, named = CASES[case]
    file = File()
    begin(file)
    at = bad(file)
    file.xid(1)
    place.fill("t", [])
    error = carried(place, tmp_path, file)
    assert isinstance(error, BinlogError), error
    assert error.code.startswith(code), error
    assert error.where.position == f"{NAME}:{at}"
    assert error.where.source == "s1"
    assert named in str(error)
    assert place.rows("t") == [], "nothing of the batch is applied"


@pytest.mark.parametrize("within", [True, False], ids=["in a transaction", "between two"])
def test_every_event_that_is_not_handled_is_refused_by_its_name(place: Target, within: bool, tmp_path: Path) -> None:
    refused = [code for code in range(256) if event_of(code).kind == REFUSED]
    assert len(refused) > 150
    for code in refused:
        file = File()
        if within:
            begin(file)
        at = file.event(code, bytes(20))
        error = carried(place, tmp_path, file)
        assert isinstance(error, BinlogError), code
        assert error.code == "BINLOG-004", code
        assert event_of(code).name in str(error)
        assert error.where.position == f"{NAME}:{at}"


WHOLE = b"\x01\x01\x00\x05\0\0\0\x00\x06\0\0\0"
"""Two rows, with nothing behind the first 2 or 7 bytes a whole event too."""


@pytest.mark.parametrize("length", [n for n in range(len(WHOLE)) if n not in (2, 7)])
def test_rows_cut_at_any_byte_are_refused(place: Target, length: int, tmp_path: Path) -> None:
    file = File()
    begin(file)
    at = file.event(23, rows(WHOLE[:length]))
    file.xid(1)
    place.fill("t", [])
    error = carried(place, tmp_path, file)
    assert isinstance(error, BinlogError)
    assert error.code in ("BINLOG-021", "BINLOG-023")
    assert error.where.position == f"{NAME}:{at}"
    assert place.rows("t") == []


def test_the_same_without_the_bad_event_is_applied(place: Target, tmp_path: Path) -> None:
    file = File()
    begin(file)
    file.rows()
    file.xid(1)
    place.fill("t", [])
    assert carried(place, tmp_path, file) is None
    assert place.rows("t") == [(5,), (5,)]


def carried(place: Target, folder: Path, file: File) -> UnshardError | None:
    """Follow a log of this file to its end as sync does, each batch as two tasks; the error that stopped it."""
    log, location = GrowingLog(folder), Location(Position(NAME, 4))
    log.show(file)
    try:
        while (work := next_work(log, location, log.written, 1 << 20, "s1")) is not None:
            if isinstance(work, TransactionRows):
                apply(place, work)
            location = work.end
    except UnshardError as error:
        return error
    assert location.position == log.written, "nothing is left unread"
    return None


def apply(place: Target, work: TransactionRows) -> None:
    piece = Range(str(work.path), NAME, work.log_range.start, work.log_range.end)
    plan: BatchPlan = replace(place.batch(BatchShape(2, 100)), ranges=(piece,), checksum=work.checksum, shares=2)
    for share in range(2):
        report = pickle.loads(run_share(pickle.dumps((plan, share))))
        if report.error is not None:
            raise error_from_dict(report.error)
