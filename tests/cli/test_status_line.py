"""What the status line says of rows that were not found, and of a lag that nobody knows."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from io import StringIO
from threading import Event
from unittest.mock import patch

import pytest
from rich.console import Console

from unshard.api.status import UnresolvedGroup
from unshard.cli.display import line, render, show
from unshard.cli.printer import Printer, unstamped
from unshard.model.position import Location, Position
from unshard.model.progress import Progress
from unshard.sync.batch.row_counts import Account, RowCounts
from unshard.sync.lag import Sighting
from unshard.sync.status import FailOver, Meter
from unshard.worker.status import SubtaskStatus, WaitingSubtask

RELAY = SubtaskStatus("s1", "relay")


def told_by(*readings: SubtaskStatus) -> list[str]:
    """What is printed where these are seen one after the other."""
    seen, ended, out = iter(readings), Event(), StringIO()

    def now() -> list[SubtaskStatus]:
        found = next(seen, None)
        if found is None:
            ended.set()
        return [found or RELAY]

    with patch("unshard.cli.display.REFRESH_SECONDS", 0):
        show(Printer(Console(file=out)), now, ended)
    return [unstamped(text) for text in out.getvalue().splitlines()]


def shown(meter: Meter, sighting: Sighting | None) -> str:
    return line(SubtaskStatus("s1", "sync", sync=meter.read(20.0, sighting)))


def test_missing_rows_are_told_with_their_tables() -> None:
    meter = Meter(location=Location(Position("b.000001", 99)))
    meter.applied(Account({f"d.t{n}": RowCounts(decoded=9, updated=9, missing=n) for n in range(5)}), 0, 19.0)
    meter.applied(Account({"d.t1": RowCounts(decoded=9, updated=9, missing=9)}), 0, 19.5)
    assert "19 rows were not found in the target (d.t1 10, d.t4 4, d.t3 3, …)" in shown(meter, None)


def test_lag_is_unknown_before_it_is_known_and_grows_while_the_source_is_away() -> None:
    meter = Meter(location=Location(Position("b.000001", 99)), behind=False)
    assert "lag unknown" in shown(meter, None)
    assert "lag 0.0 s" in shown(meter, Sighting(Position("b.000001", 99), 5000.0, 18.0))
    assert "lag 2.0 s" in shown(meter, None)


def test_a_merged_table_that_waits_for_its_ddl_is_told_though_the_lag_is_zero() -> None:
    meter = Meter(location=Location(Position("b.000001", 99)))
    meter.groups = (UnresolvedGroup(target="`d`.`t`", waits_for="s2 has not met it in d.t1"),)
    assert "`d`.`t` waits for its DDL (s2 has not met it in d.t1)" in shown(meter, None)


@pytest.mark.parametrize(
    ("rows_before", "told"),
    [
        (0, "1,000 rows/s  2/2 tables  done in 4.0 s"),
        (3000, "250 rows/s  2/2 tables  done in 4.0 s"),
        (4000, "2/2 tables  done by an earlier run"),
    ],
)
def test_each_copying_unit_gets_one_line_that_stays_as_it_ends(rows_before: int, told: str) -> None:
    dump = SubtaskStatus("s1", "dump", 4.0, Progress(2, 2, 4000, 4000, 9000, 9000, rows_before))
    over = replace(RELAY, copied=(dump,))
    done = [text for text in told_by(dump, over, over) if "done" in text]
    assert done == [f"s1  dump  4,000 rows  9.0 kB  {told}"]


def test_keys_that_are_built_after_the_rows_are_told() -> None:
    load = SubtaskStatus("s1", "load", 4.0, Progress(1, 2, 4000, 4000, 9000, 9000, 0), note="builds the keys of d.t")
    assert line(load).startswith("s1  load  4,000 of about 4,000 rows")
    assert line(load).endswith("  builds the keys of d.t")


def test_a_wait_is_told_in_place_of_figures_and_gets_one_line_that_stays() -> None:
    def at(second: int) -> datetime:
        return datetime(2026, 1, 2, 3, 4, second, tzinfo=UTC)

    waits = WaitingSubtask("SOURCE-003: it was lost", at(5), at(6))
    first = SubtaskStatus("s1", "starting", waits=waits, waited=waits)
    assert line(first) == (
        "s1  waits  since 03:04:05 UTC for this to pass: SOURCE-003: it was lost, next try at 03:04:06 UTC"
    )
    later = replace(waits, until=at(9))
    again = replace(first, waits=later, waited=later)
    stays = [text for text in told_by(first, RELAY, again, again) if "by itself" in text]
    assert stays == ["s1  waits  since 03:04:05 UTC for this to pass: SOURCE-003: it was lost. It goes on by itself"]


def test_a_wait_that_is_over_between_two_readings_gets_its_line() -> None:
    at = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
    over = replace(RELAY, waited=WaitingSubtask("SOURCE-003: it was lost", at, at))
    stays = [text for text in told_by(RELAY, over, over) if "by itself" in text]
    assert stays == ["s1  waits  since 03:04:05 UTC for this to pass: SOURCE-003: it was lost. It goes on by itself"]


def test_each_fail_over_gets_one_line_that_stays() -> None:
    meter = Meter(location=Location(Position("b.000001", 99)))
    there, back = FailOver("0-1", "0-2", "b.000007:345"), FailOver("0-2", "0-1", "b.000001:99")
    readings = []
    for meter.failovers in ((), (there,), (there,), (there, back)):
        readings.append(SubtaskStatus("s1", "sync", sync=meter.read(20.0, None)))
    assert [text for text in told_by(*readings) if "failed over" in text] == [
        "s1  the source has failed over from server 0-1 to 0-2, it goes on at b.000007:345",
        "s1  the source has failed over from server 0-2 to 0-1, it goes on at b.000001:99",
    ]


def test_a_terminal_shows_names_and_notes_letter_by_letter() -> None:
    dump = SubtaskStatus("[s1]", "dump", 4.0, Progress(1, 2, 2000, 4000, 9000, 9000))
    sync = SubtaskStatus("s2", "sync", note="the last error: 1146: Table 'd.t[/b]' [red] doesn't exist")
    out = StringIO()
    Console(file=out, force_terminal=True, color_system=None, width=200).print(render([dump, sync]))
    assert line(dump) in out.getvalue()
    assert line(sync) in out.getvalue()
