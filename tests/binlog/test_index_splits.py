from __future__ import annotations

from made_events import File, offsets

from unshard.binlog.transaction_range import slices, splits


def test_splits_are_near_equal_and_start_where_decoding_may() -> None:
    file = File()
    starts = [file.transaction(number, b"a", padding=200) for number in range(1, 41)]
    end = len(file.data)
    points = splits(bytes(file.data), starts[0], end, 4)
    assert len(points) == 4
    assert points[0] == starts[0]
    pieces = [b - a for a, b in zip(points, (*points[1:], end), strict=True)]
    assert max(pieces) - min(pieces) < 2 * (starts[1] - starts[0])
    may_begin = set(starts) | {at for at in offsets(bytes(file.data)) if file.data[at + 4] == 19}
    assert set(points) <= may_begin
    assert splits(bytes(file.data), starts[0], end, 1) == (starts[0],)
    assert splits(bytes(file.data), starts[0], starts[0], 3) == (starts[0],)


def test_splits_leave_a_statement_whole() -> None:
    file = File()
    start = file.gtid(1)
    for _ in range(8):
        first = file.table_map(table=b"a")
        file.table_map(table=b"b", number=2)
        file.rows(last=False, padding=100)
        file.rows(last=False, padding=100)
        file.rows(last=True, padding=100)
    file.xid()
    points = splits(bytes(file.data), start, len(file.data), 50)
    firsts = [at for at in offsets(bytes(file.data)) if file.data[at + 4] == 19][::2]
    assert first in points
    assert set(points) <= {start, *firsts}
    assert set(points) >= set(firsts[1:])


def cuts(file: File, start: int, size: int) -> list[tuple[int, tuple[int, ...]]]:
    found = list(slices(bytes(file.data), start, len(file.data), size, checksum=True))
    assert [one.end for one in found] == [*(one.start for one in found[1:]), len(file.data)]
    return [(one.start, one.maps) for one in found]


def test_slices_cut_within_a_statement_and_name_its_tables() -> None:
    file = File()
    start = file.gtid(1)
    first = file.table_map(table=b"a")
    second = file.table_map(table=b"b", number=2)
    rows = [file.rows(last=number == 9, padding=100) for number in range(10)]
    file.xid()
    behind = file.transaction(2, b"a", padding=300)
    end = len(file.data)
    size = rows[1] - rows[0]
    found = cuts(file, start, 3 * size)
    inner = [at for at, maps in found if maps]
    assert found[0] == (start, ())
    assert len(inner) >= 2
    assert set(inner) <= set(rows)
    assert all(maps in ((), (first, second)) for _, maps in found)
    assert cuts(file, start, end) == [(start, ())]
    assert (behind, ()) in cuts(file, start, 1)
