"""The copy by table: what a worker tells anew, what the page makes of it, and the screen."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from page_served import HOSTILE, copied, page_served, status
from test_page import client, read

from unshard.api.status import CopyProgress
from unshard.errors import ClusterError
from unshard.model.progress import CopyStage, TableProgress
from unshard.model.table import TableName
from unshard.web.page.copying import CopyWatch, shown_tables
from unshard.worker.copied_tables import CopiedTables


def waiting(*names: str) -> tuple[TableProgress, ...]:
    return tuple(TableProgress(TableName("s", name), CopyStage.WAITING, rows_about=100) for name in names)


def test_only_what_has_changed_is_told_again() -> None:
    tables = CopiedTables(lambda name: TableName("whole", name.table))
    now = waiting("a", "b", "c")
    first = tables.since(now, "", 0)
    assert first.whole
    assert [(one.table, one.target) for one in first.tables][1] == ("s.b", "whole.b")
    assert tables.since(now, first.life, first.revision).tables == ()
    now = (now[0], replace(now[1], stage=CopyStage.DUMPING, rows=40), now[2])
    second = tables.since(now, first.life, first.revision)
    assert not second.whole
    assert [(one.table, one.rows) for one in second.tables] == [("s.b", 40)]
    assert len(tables.since(now, "another", 7).tables) == 3, "who has another life's count gets all"
    assert tables.since(now, first.life, first.revision) == second, "two masters may ask"


def test_a_dump_that_begins_anew_with_fewer_tables_is_told_whole() -> None:
    tables = CopiedTables(lambda name: name)
    first = tables.since(waiting("a", "b"), "", 0)
    again = tables.since(waiting("b"), first.life, first.revision)
    assert again.whole
    assert again.life != first.life
    assert [one.table for one in again.tables] == ["s.b"]


def test_ten_thousand_tables_of_which_few_work_are_a_small_answer() -> None:
    tables, now = CopiedTables(lambda name: name), copied(10_000)
    first = tables.since(now, "", 0)
    moved = (*now[:4], replace(now[4], rows=1), *now[5:])
    assert len(tables.since(moved, first.life, first.revision).model_dump_json()) < 400


class Worker:
    """Answers for the source `s1`."""

    def __init__(self, *names: str) -> None:
        self.now = waiting(*names)
        self.tables = CopiedTables(lambda name: name)
        self.asked = 0
        self.silent = False

    def __call__(self, source: str, task: str, life: str, since: int) -> CopyProgress:
        self.asked += 1
        if self.silent:
            raise ClusterError("CLUSTER-023")
        return self.tables.since(self.now, life, since)


def test_rates_and_time_left_come_from_the_last_minute() -> None:
    worker = Worker("a", "b")
    watch = CopyWatch(worker)
    assert watch.watch("t", 0.0)
    for second in range(0, 100, 2):
        loading = replace(worker.now[0], stage=CopyStage.LOADING, rows=10 * second, rows_about=2000)
        worker.now = (loading, worker.now[1])
        watch.watch("t", float(second))
        assert watch.look({"t": ("s1",)}, float(second))
    a, b = watch.figures("t").tables
    assert a.rate == pytest.approx(10)
    assert a.share == 980 / 2000
    assert a.eta == "82 s to 2 min"
    assert (b.rate, b.eta, b.share) == (None, "", 0)
    worker.now = (replace(worker.now[0], stage=CopyStage.LOADED, rows=2000), worker.now[1])
    watch.look({"t": ("s1",)}, 100.0)
    assert (watch.figures("t").tables[0].rate, watch.figures("t").tables[0].share) == (None, 1)


def test_nobody_is_asked_of_a_task_that_nobody_looks_at() -> None:
    worker = Worker("a")
    watch = CopyWatch(worker)
    assert not watch.look({"t": ("s1",)}, 0.0)
    watch.watch("t", 0.0)
    watch.look({"t": ("s1",)}, 1.0)
    watch.look({"t": ("s1",)}, 20.0)
    assert worker.asked == 1
    assert len(watch.figures("t").tables) == 1
    watch.look({}, 21.0)
    assert watch.figures("t").tables == (), "a task that is gone is forgotten"


def test_a_source_that_tells_nothing_is_named_beside_what_it_told_last() -> None:
    worker = Worker("a")
    watch = CopyWatch(worker)
    watch.watch("t", 0.0)
    watch.look({"t": ("s1",)}, 0.0)
    worker.silent = True
    assert watch.look({"t": ("s1",)}, 2.0)
    figures = watch.figures("t")
    assert "CLUSTER-023" in figures.silent["s1"]
    assert len(figures.tables) == 1
    worker.silent = False
    assert watch.look({"t": ("s1",)}, 4.0)
    assert watch.figures("t").silent == {}


def test_search_stage_and_order() -> None:
    worker = Worker("a", "b", "ab")
    worker.now = (worker.now[0], replace(worker.now[1], stage=CopyStage.LOADING, rows=99), worker.now[2])
    watch = CopyWatch(worker)
    watch.watch("t", 0.0)
    watch.look({"t": ("s1",)}, 0.0)
    figures = watch.figures("t")

    def names(words: str, stage: str, sort: str) -> list[str]:
        return [one.copy.table for one in shown_tables(figures, words, stage, sort)]

    assert names("", "", "work") == ["s.b", "s.a", "s.ab"]
    assert names("S.A", "", "table") == ["s.a", "s.ab"]
    assert names("", "loading", "") == ["s.b"]
    assert names("", "", "left") == ["s.a", "s.ab", "s.b"]


def test_the_screen_at_ten_thousand_tables(tmp_path: Path) -> None:
    with page_served(tmp_path, status()) as page, client(page, "vic") as browser:
        assert "No table is being copied" in read(browser, "tasks/shop/copy").text
        page.copy(copied(10_000))
        found = read(browser, "tasks/shop/copy?sort=table")
        assert "10,000 tables, page 1 of 100" in found.text
        assert "unknown" in found.text
        answer = browser.get("tasks/shop/copy")
        assert HOSTILE in read(browser, "tasks/shop/copy?stage=dumping").text
        assert "<script>alert" not in answer.text
        assert answer.text.count("<tr") == 1 + 100
        assert len(answer.text) < 60_000
        assert "orders_00042" in read(browser, "tasks/shop/copy?q=RS_00042").text
        assert read(browser, "tasks/none/copy", 404)


def test_the_worker_is_asked_once_for_all_pages_and_not_at_all_without_one(tmp_path: Path) -> None:
    with page_served(tmp_path, status()) as page:
        page.copy(copied(10))
        assert page.link.copies_asked == 0
        with client(page, "vic") as one, client(page, "oda") as other:
            asked = [browser.get("tasks/shop/copy").status_code for browser in (one, other) * 20]
        assert asked == [200] * 40
        assert 1 <= page.link.copies_asked < 20
