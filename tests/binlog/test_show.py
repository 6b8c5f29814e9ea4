"""`unshard binlog show`: what is told of each event, ranges, filters, damage, a reader that has seen enough."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from struct import pack

import pytest
from made_events import File

from unshard.cli.binlog import BinlogWish, WrongUse, show_binlog
from unshard.cli.binlog_lines import value_text
from unshard.errors import BinlogError
from unshard.model.table import Column

UUID = bytes(range(16))


@pytest.fixture
def made() -> File:
    """A transaction on s.a, one on s.b, a statement, and one that changes rows."""
    file = File()
    file.transaction(1, b"a")
    file.transaction(2, b"b")
    file.gtid(3, flags=1)
    file.query("ALTER TABLE a DROP COLUMN x, ADD INDEX (y), COMMENT 'z'")
    file.gtid(4)
    file.query("UPDATE a SET x = 1")
    file.query("COMMIT")
    return file


def shown(file: File, folder: Path, **wish: object) -> list[str]:
    path = folder / "mysql-bin.000001"
    path.write_bytes(file.data)
    lines: list[str] = []
    show_binlog(path, BinlogWish(**wish), lines.append)  # type: ignore[arg-type]
    return lines


def words(lines: list[str], name: str) -> list[list[str]]:
    """The words of the lines of that event, without its position and time."""
    return [line.split()[3:] for line in lines if name in line.split()[3:5]]


def test_each_event_is_told_with_dms_name(made: File, tmp_path: Path) -> None:
    lines = shown(made, tmp_path)
    assert lines[0] == "mysql-bin.000001: 10.11.6-MariaDB-log, checksums CRC32"
    assert words(lines, "WRITE_ROWS_V1") == [
        ["38", "WRITE_ROWS_V1", "insert", "s.a", "1", "row"],
        ["38", "WRITE_ROWS_V1", "insert", "s.b", "1", "row"],
    ]
    assert lines.count(" " * 14 + "+ @1=5") == 2
    (alter,) = [line for line in lines if "ALTER" in line]
    assert "alter table, drop column, modify constraint" in alter
    assert any(line.endswith("! not followed: rows were changed by a statement") for line in lines)
    assert [line for line in lines if line.startswith("-- not logged")] == [
        "-- not logged (binlog_row_metadata isn't FULL): column names (shown as @1, @2 …), "
        "signs of integers (all shown as signed)"
    ]


def test_the_summary_adds_up_what_was_listed(made: File, tmp_path: Path) -> None:
    lines = shown(made, tmp_path)
    summary = lines[lines.index("") + 1 :]
    assert summary[0].startswith("16 events, 4 transactions, ")
    assert summary[1:] == [
        "  s.a  insert 1  update 0  delete 0",
        "  s.b  insert 1  update 0  delete 0",
        "  alter table 1, drop column 1, modify constraint 1",
    ]


def test_one_table_comes_with_the_frames_of_its_transactions(made: File, tmp_path: Path) -> None:
    lines = shown(made, tmp_path, table="s.a")
    events = [line.split()[4] for line in lines if line[:10].strip().isdigit()]
    assert events == [
        *("MARIADB_GTID", "ANNOTATE_ROWS", "TABLE_MAP", "WRITE_ROWS_V1", "XID"),
        *("MARIADB_GTID", "QUERY"),
    ]
    assert not any("s.b" in line for line in lines)


def test_a_position_within_an_event_goes_on_with_the_next(made: File, tmp_path: Path) -> None:
    everything = shown(made, tmp_path)
    positions = [int(line.split()[0]) for line in everything if line[:10].strip().isdigit()]
    rows_at = positions[4]
    lines = shown(made, tmp_path, start=f"mysql-bin.000001:{rows_at - 1}", stop=str(positions[6]))
    note = f"-- {rows_at - 1} is within the TABLE_MAP event at {positions[3]}: from {rows_at} on"
    assert note in lines
    assert [int(line.split()[0]) for line in lines if line[:10].strip().isdigit()] == positions[4:6]
    assert " " * 14 + "+ @1=5" in lines  # by the TABLE_MAP before
    assert any("no event at 99999 or after" in line for line in shown(made, tmp_path, start="99999"))


def test_a_limit_says_where_it_stopped(made: File, tmp_path: Path) -> None:
    lines = shown(made, tmp_path, limit=2)
    assert sum(line[:10].strip().isdigit() for line in lines) == 2
    assert any(line.startswith("-- stopped before ") for line in lines)


@pytest.mark.parametrize(
    "wish", [{"start": "mysql-bin.000002:4"}, {"stop": "soon"}, {"start": "-4"}, {"table": "a"}, {"table": ".a"}]
)
def test_options_that_can_not_be_are_wrong_use(wish: dict[str, str], made: File, tmp_path: Path) -> None:
    with pytest.raises(WrongUse):
        shown(made, tmp_path, **wish)


def test_json_has_an_object_a_line(made: File, tmp_path: Path) -> None:
    forms = [json.loads(line) for line in shown(made, tmp_path, as_json=True)]
    rows = [form for form in forms if form.get("event") == "WRITE_ROWS_V1"]
    assert rows[0]["rows"] == [{"after": {"@1": 5}}]
    assert (rows[0]["dm"], rows[0]["gtid"], rows[0]["tables"]) == (["insert"], "0-7-1", ["s.a"])
    assert forms[-1]["summary"]["rows"] == {"s.a": {"insert": 1}, "s.b": {"insert": 1}}


def told(file: File, folder: Path) -> tuple[list[str], BinlogError]:
    path = folder / "mysql-bin.000001"
    path.write_bytes(file.data)
    lines: list[str] = []
    with pytest.raises(BinlogError) as raised:
        show_binlog(path, BinlogWish(), lines.append)
    return lines, raised.value


def test_damage_ends_the_list_with_its_place(made: File, tmp_path: Path) -> None:
    at = made.transaction(5, b"c")
    made.data[at + 25] ^= 1
    lines, error = told(made, tmp_path)
    assert (error.code, error.where.position) == ("BINLOG-001", f"mysql-bin.000001:{at}")
    assert sum(line[:10].strip().isdigit() for line in lines) == 16
    assert any(line.startswith("16 events") for line in lines)


def test_what_lies_behind_damage_can_be_looked_at(made: File, tmp_path: Path) -> None:
    made.data[300] ^= 1
    after = made.transaction(5, b"c")
    assert any("s.c" in line for line in shown(made, tmp_path, start=str(after)))


def test_a_closed_file_that_ends_within_an_event_was_cut(made: File, tmp_path: Path) -> None:
    at = made.xid()
    del made.data[-3:]
    lines, error = told(made, tmp_path)
    assert (error.code, error.where.position) == ("BINLOG-050", f"mysql-bin.000001:{at}")
    assert sum(line[:10].strip().isdigit() for line in lines) == 16


def test_a_file_in_use_ends_at_its_last_whole_event(made: File, tmp_path: Path) -> None:
    made.data[4 + 17] |= 1  # the header flag of a binlog that the server writes
    at = made.xid()
    del made.data[-3:]
    note = f"-- the last whole event ends at {at}, 28 bytes follow: of an event that is being written, or"
    assert any(line.startswith(note) for line in shown(made, tmp_path))


def test_the_last_relay_file_may_be_growing_an_earlier_one_not(made: File, tmp_path: Path) -> None:
    del made.data[-3:]
    (tmp_path / "relay.meta").touch()
    assert any("is being written" in line for line in shown(made, tmp_path))
    (tmp_path / "mysql-bin.000002").touch()
    assert told(made, tmp_path)[1].code == "BINLOG-050"


def test_what_is_no_binlog_is_told(tmp_path: Path) -> None:
    path = tmp_path / "x"
    for data, code in ((b"", "BINLOG-003"), (b"hello, world", "BINLOG-003"), (None, "BINLOG-051")):
        path.unlink(missing_ok=True) if data is None else path.write_bytes(data)
        with pytest.raises(BinlogError, match=code):
            show_binlog(path, BinlogWish(), print)


def test_a_relay_log_of_a_server_is_read_to_its_end(made: File, tmp_path: Path) -> None:
    """Its events keep the positions they had in the source's file, and a second format comes with its own checksums."""
    plain = File(checksum=False)
    made.event(15, bytes(plain.data[23:-4]), position=200)
    made.checksum = False
    made.event(16, pack("<Q", 9), position=300)
    lines = shown(made, tmp_path)
    assert any(line.startswith("-- events name other places than their own") for line in lines)
    assert any(line.endswith("xid=9") for line in lines)


def run(*arguments: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "unshard", "binlog", "show", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


def test_exit_codes_and_streams(made: File, tmp_path: Path) -> None:
    path = tmp_path / "mysql-bin.000001"
    path.write_bytes(made.data)
    done = run(str(path))
    assert (done.returncode, done.stderr) == (0, "")
    assert run(str(path), "--from", "other.000001:4").returncode == 2
    path.write_bytes(made.data[:-2])
    done = run(str(path))
    assert done.returncode == 1
    assert done.stderr.startswith("BINLOG-050")
    assert "4 transactions" in done.stdout


def test_a_reader_that_has_seen_enough_meets_no_traceback(tmp_path: Path) -> None:
    file = File()
    for number in range(1, 3000):
        file.transaction(number, b"a")
    path = tmp_path / "mysql-bin.000001"
    path.write_bytes(file.data)
    command = [sys.executable, "-m", "unshard", "binlog", "show", str(path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.readline()
        process.stdout.close()
        assert process.stderr.read() == ""


@pytest.mark.parametrize(
    ("value", "kind", "text"),
    [
        (None, "int", "NULL"),
        (-5, "int", "-5"),
        ("3.50", "decimal", "3.50"),
        ("it's\n", "varchar", r"'it\'s\n'"),
        ("2020-01-02", "date", "'2020-01-02'"),
        (b"\x00\xff", "blob", "x'00ff'"),
        ("x" * 100, "text", f"'{'x' * 80}' … 100 characters"),
        (bytes(100), "blob", f"x'{'0' * 80}' … 100 bytes"),
    ],
)
def test_values_are_told_as_literals(value: object, kind: str, text: str) -> None:
    assert value_text(value, Column("c", kind, kind), full=False) == text
