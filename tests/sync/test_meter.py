"""What a sync unit tells of its pace and of each table's lag: honest while nothing moves."""

from __future__ import annotations

from unshard.model.position import Location, Position
from unshard.sync.batch.row_counts import Account, RowCounts
from unshard.sync.lag import Sighting
from unshard.sync.status import LONG_WINDOW_SECONDS, WINDOW_SECONDS, Meter, Unsynced, WaitingDdl

SOURCE = 5_000_000.0


def at(offset: int) -> Position:
    return Position("b.000001", offset)


def meter(offset: int) -> Meter:
    return Meter(location=Location(at(offset)), behind=False)


def sighting(offset: int, now: float) -> Sighting:
    return Sighting(at(offset), SOURCE + now, now)


def test_rates_fall_to_nothing_when_nothing_comes() -> None:
    found = meter(100)
    found.applied(Account({"d.t": RowCounts(decoded=50, inserted=50)}), SOURCE, 10.0, transactions=5, size=1000)
    found.passed(Account(skipped={("d.u", "filter"): 7}), 11.0, transactions=10, size=500)
    now = found.read(12.0, None)
    assert (now.rows_per_second, now.transactions_per_second, now.bytes_per_second) == (10.0, 3.0, 300.0)
    assert (now.rows, now.transactions, now.bytes) == (50, 15, 1500)
    later = found.read(11.5 + WINDOW_SECONDS, None)
    assert (later.rows_per_second, later.transactions_per_second) == (0, 0)
    assert later.pace == 1500 / LONG_WINDOW_SECONDS
    last = found.read(12.0 + LONG_WINDOW_SECONDS, None)
    assert (last.pace, last.transactions) == (0, 15)


def test_a_table_has_the_lag_of_its_source() -> None:
    found = meter(100)
    found.applied(Account({"d.t": RowCounts(decoded=1, inserted=1)}), SOURCE, 0.0)
    assert found.read(0.0, None).table_lag == {"d.t": None}
    assert found.read(1.0, sighting(100, 1)).table_lag == {"d.t": 0.0}
    assert found.read(9.0, sighting(200, 8)).table_lag == {"d.t": 8.0}, "of the place that the source had at 1"


def test_a_held_table_falls_behind_while_the_source_is_in_step() -> None:
    found = meter(100)
    found.applied(
        Account({"d.t": RowCounts(decoded=1, inserted=1), "d.u": RowCounts(decoded=1, inserted=1)}), SOURCE, 0.0
    )
    found.waits({"d.t": Unsynced((), SOURCE + 2)}, 0.0)
    assert found.read(9.0, sighting(100, 8)).table_lag == {"d.t": 7.0, "d.u": 0.0}
    assert found.read(60.0, None).table_lag["d.t"] == 58.0, "it grows while the source can't be asked"
    found.waits({}, 61.0)
    assert found.read(61.0, sighting(100, 61)).table_lag["d.t"] == 0.0


def test_a_sharding_ddl_holds_its_table_while_it_waits() -> None:
    found = meter(100)
    found.applied(Account({"d.t": RowCounts(decoded=1, inserted=1)}), SOURCE, 0.0)
    found.waits({"d.t": Unsynced(("d.t2",))}, 1.0)
    found.applied(Account({"d.u": RowCounts(decoded=1, inserted=1)}), SOURCE + 4, 5.0)
    found.waits({"d.t": Unsynced(())}, 5.0)
    now = found.read(9.0, sighting(100, 9))
    assert now.waiting == {"d.t": WaitingDdl((), 8.0)}
    assert now.table_lag == {"d.t": 9.0, "d.u": 0.0}
    found.waits({}, 10.0)
    later = found.read(10.0, sighting(100, 10))
    assert (later.waiting, later.table_lag) == ({}, {"d.t": 0.0, "d.u": 0.0})


def test_how_long_a_sharding_ddl_waits_goes_on_over_a_restart() -> None:
    found = meter(100)
    found.waits({"d.t": Unsynced(("d.t2",), SOURCE - 90)}, 1.0)
    now = found.read(9.0, sighting(100, 9))
    assert (now.waiting, now.table_lag) == ({"d.t": WaitingDdl(("d.t2",), 99.0)}, {"d.t": 99.0})
    found.waits({"d.t": Unsynced(())}, 9.0)  # it is run, and its changes are read again
    assert found.read(10.0, sighting(100, 10)).waiting == {"d.t": WaitingDdl((), 100.0)}


def test_the_time_between_checkpoints_is_counted() -> None:
    found = meter(100)
    for now in (5.0, 6.0, 36.0):
        found.saved(now)
    intervals = found.read(40.0, None).checkpoint_intervals
    assert intervals is not None
    assert (sum(intervals.counts), intervals.total) == (2, 31.0)
