"""A run's lines in a file or a pipe, and its status as JSON."""

from __future__ import annotations

import json
import re
from io import StringIO
from pathlib import Path
from threading import Event
from unittest.mock import patch

import pytest
from rich.console import Console

from unshard.api.status import UnresolvedGroup
from unshard.cli.json_status import JsonStatus, source_form
from unshard.cli.printer import Printer, error_text, unstamped
from unshard.errors import ConfigError
from unshard.model.position import Location, Position
from unshard.model.progress import Progress
from unshard.sync.status import Meter
from unshard.worker.status import SubtaskStatus

COPYING = SubtaskStatus("s1", "dump", 4.04, Progress(1, 2, 2000, 4000, 9000, 9000))


def lines_of(out: StringIO) -> list[dict[str, object]]:
    return [json.loads(line) for line in out.getvalue().splitlines()]


def test_a_line_in_a_file_has_time_and_level_and_no_control_codes() -> None:
    out = StringIO()
    Printer(Console(file=out)).tell("table \x1b[31m`a`", "WARN")
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ WARN  table \?\[31m`a`\n", out.getvalue())
    assert unstamped(out.getvalue()) == "table ?[31m`a`\n"


def test_a_terminal_has_the_line_alone() -> None:
    out = StringIO()
    Printer(Console(file=out, force_terminal=True, color_system=None)).tell("[s1] starting Spark")
    assert out.getvalue() == "[s1] starting Spark\n"


def test_an_error_in_a_file_has_time_and_level_before_its_code() -> None:
    assert re.match(
        r"\S+Z ERROR CONFIG-002: no\n  what to do: x", error_text("CONFIG-002: no\n  what to do: x", StringIO())
    )


def test_a_line_a_second_and_a_last_one_that_repeats_the_sources() -> None:
    out, stop = StringIO(), Event()
    status = JsonStatus(out, "app")
    with patch("time.monotonic", iter([10.0, 10.0, 10.9, 11.0, 11.0]).__next__), status.over(stop):
        for _ in range(3):
            status.look(stop, [COPYING])
        stop.set()
    first, *looks, last = lines_of(out)
    assert (first["state"], first["sources"]) == ("starting", [])
    assert [one["state"] for one in looks] == ["running", "running"]
    assert (last["state"], last["exit_code"], last["sources"]) == ("stopped", 0, [source_form(COPYING)])


@pytest.mark.parametrize("redact", [False, True])
def test_the_last_line_tells_the_error(redact: bool) -> None:
    out = StringIO()
    error = ConfigError("CONFIG-002", cause="secret row", values={"path": "task.yaml"})
    with pytest.raises(ConfigError), JsonStatus(out, "app", redact).over(Event()):
        raise error
    last = lines_of(out)[-1]
    assert (last["state"], last["exit_code"]) == ("failed", 1)
    assert last["error"] == {"code": "CONFIG-002", "message": "" if redact else str(error)}


def test_each_source_has_every_field_in_every_unit() -> None:
    meter = Meter(location=Location(Position("b.000001", 99), "0-1-7"))
    meter.groups = (UnresolvedGroup(target="`d`.`t`", waits_for="s2"),)
    following = source_form(SubtaskStatus("s1", "sync", sync=meter.read(20.0, None), backlog_bytes=3))
    copying = source_form(COPYING)
    assert set(following) == set(copying)
    assert (copying["copy_rows"], copying["copy_rows_estimate"], copying["rows"]) == (2000, 4000, None)
    assert (following["binlog_file"], following["binlog_position"], following["gtid"]) == ("b.000001", 99, "0-1-7")
    assert following["ddl_waits"] == [{"table": "`d`.`t`", "for": "s2"}]
    assert following["copy_rows"] is None


def test_the_how_to_lists_the_fields() -> None:
    page = (Path(__file__).parents[2] / "docs" / "how-to" / "read-the-status-line.md").read_text(encoding="utf-8")
    assert {name for name in source_form(COPYING) if f"`{name}`" not in page} == set()
