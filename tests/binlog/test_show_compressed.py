"""`unshard binlog show` on compressed events: what is in them, and where they can't be unpacked."""

from __future__ import annotations

import json
from pathlib import Path
from struct import pack

from made_events import File
from row_images import map_table, packed, rows
from test_compressed import LONG, deflated, image, inner, last_event, mysql_file, payload
from test_show import shown


def test_the_events_of_a_payload_follow_it(tmp_path: Path) -> None:
    file = mysql_file(payload(inner(tables=2).data))
    at = last_event(file)
    forms = [json.loads(line) for line in shown(file, tmp_path, as_json=True)]
    inside = [form for form in forms if form.get("payload") == at]
    assert [form["event"] for form in inside] == [
        *("QUERY", "ROWS_QUERY", "TABLE_MAP", "WRITE_ROWS_V2"),
        *("ROWS_QUERY", "TABLE_MAP", "WRITE_ROWS_V2", "XID"),
    ]
    assert inside[3]["rows"] == [{"after": {"@1": 0}}, {"after": {"@1": 100}}]
    assert all(form["gtid"].endswith(":1") for form in inside)
    summary = forms[-1]["summary"]
    assert (summary["events"], summary["bytes"]) == (3, len(file.data) - 4)
    lines = shown(file, tmp_path)
    (begin,) = [line for line in lines if "BEGIN" in line]
    assert begin.startswith("        +0  ")


def test_one_table_of_a_payload_comes_with_its_frame(tmp_path: Path) -> None:
    file = mysql_file(payload(inner(tables=2).data))
    file.mysql_gtid(bytes(16), 2)
    file.event(40, payload(inner().data))
    forms = [json.loads(line) for line in shown(file, tmp_path, table="s.t1", as_json=True)]
    events = [form["event"] for form in forms if "event" in form]
    assert events == ["GTID", "TRANSACTION_PAYLOAD", "QUERY", "ROWS_QUERY", "TABLE_MAP", "WRITE_ROWS_V2", "XID"]


def test_rows_that_can_not_be_read_are_told_at_their_payload(tmp_path: Path) -> None:
    events = inner(close=False)
    rows(events, image(1), number=77, code=30)
    file = mysql_file(payload(events.data))
    (form,) = [form for line in shown(file, tmp_path, as_json=True) if (form := json.loads(line)).get("error")]
    assert (form["error"]["code"], form["payload"]) == ("BINLOG-026", last_event(file))
    assert form["error"]["where"]["position"] == f"mysql-bin.000001:{last_event(file)}"


def test_a_payload_that_can_not_be_unpacked_is_told_and_passed(tmp_path: Path) -> None:
    file = mysql_file(payload(inner().data, plain=5))
    file.xid(9)
    lines = shown(file, tmp_path)
    assert any("! BINLOG-030" in line for line in lines)
    assert any(line.endswith("xid=9") for line in lines)


def test_compressed_statements_and_rows_of_mariadb(tmp_path: Path) -> None:
    file = File()
    file.gtid(1, flags=1)
    file.event(165, pack("<IIBHH", 3, 0, 1, 0, 0) + b"s\0" + deflated(b"CREATE TABLE t (a int)"))
    file.gtid(2)
    map_table(file, [LONG])
    file.event(166, pack("<IHH", 1, 0, 1) + packed(1) + b"\x01" + deflated(image(5)))
    file.xid()
    lines = shown(file, tmp_path)
    (create,) = [line for line in lines if "QUERY_COMPRESSED" in line]
    assert create.endswith("create table  schema=s  sql=CREATE TABLE t (a int)")
    assert " " * 14 + "+ @1=5" in lines
