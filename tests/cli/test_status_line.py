"""What the status line says of rows that were not found, and of a lag that nobody knows."""

from __future__ import annotations

from dataclasses import replace
from io import StringIO
from threading import Event

import pytest
from rich.console import Console

from unshard.api.status import UnresolvedGroup
from unshard.cli.display import line, show
from unshard.model.position import Location, Position
from unshard.model.progress import Progress
from unshard.sync.lag import Sighting
from unshard.sync.ledger import Account, Entry
from unshard.sync.status import Meter
from unshard.worker.status import SubtaskStatus

RELAY = SubtaskStatus("s1", "relay")


def shown(meter: Meter, sighting: Sighting | None) -> str:
    return line(SubtaskStatus("s1", "sync", sync=meter.read(20.0, sighting)))


def test_missing_rows_are_told_with_their_tables() -> None:
    meter = Meter(location=Location(Position("b.000001", 99)))
    meter.applied(Account({f"d.t{n}": Entry(decoded=9, updated=9, missing=n) for n in range(5)}), 0, 19.0)
    meter.applied(Account({"d.t1": Entry(decoded=9, updated=9, missing=9)}), 0, 19.5)
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
    seen, ended, out = iter((dump, replace(RELAY, copied=(dump,)), replace(RELAY, copied=(dump,)))), Event(), StringIO()

    def readings() -> list[SubtaskStatus]:
        now = next(seen, None)
        if now is None:
            ended.set()
        return [now or RELAY]

    show(Console(file=out), readings, ended)
    done = [text for text in out.getvalue().splitlines() if "done" in text]
    assert done == [f"s1  dump  4,000 rows  9.0 kB  {told}"]
