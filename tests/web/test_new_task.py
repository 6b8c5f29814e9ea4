"""A new task by a form: its text, its check, its start."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from page_served import HOSTILE, SECRET, PageServed, page_served, status
from test_page import PageText, client, read

from unshard.config.files import parse_task
from unshard.errors import ClusterError
from unshard.web.page.new_task import NewTask

FIELDS = {
    "name": "second", "mode": "full", "shard_mode": "", "host": "127.0.0.1", "port": "4000", "user": "root",
    "password": SECRET, "source-1": "s1", "take": "shop_*.orders_*\r\ncrm", "routes": "shop_*.orders_* -> shop.orders",
}  # fmt: skip


@pytest.fixture
def page(tmp_path: Path) -> Iterator[PageServed]:
    with page_served(tmp_path, status()) as made:
        yield made


def test_the_fields_become_a_task_file() -> None:
    task = parse_task(NewTask.of({**FIELDS, "shard_mode": "pessimistic", "mode": "all", "source-2": "s2"}).text())
    assert (task.name, task.task_mode, task.shard_mode) == ("second", "all", "pessimistic")
    assert (task.target_database.port, task.target_database.password) == (4000, SECRET)
    assert [one.source_id for one in task.mysql_instances] == ["s1", "s2"]
    rule = task.routes["route-1"]
    assert (rule.schema_pattern, rule.target_schema, rule.target_table) == ("shop_*", "shop", "orders")
    taken = task.block_allow_list["ours"].do_tables
    assert [(one.db_name, one.tbl_name) for one in taken] == [("shop_*", "orders_*"), ("crm", "*")]
    assert all(one.route_rules == ("route-1",) and one.block_allow_list == "ours" for one in task.mysql_instances)


def test_empty_lists_take_all_and_rename_nothing() -> None:
    task = parse_task(NewTask.of({**FIELDS, "take": "", "routes": " \r\n"}).text())
    assert task.routes == {}
    assert task.block_allow_list == {}


@pytest.mark.parametrize(("key", "text"), [("routes", "a.b"), ("routes", "a.b -> c.d.e"), ("take", ".t")])
def test_what_is_no_pattern_is_refused_with_its_line(key: str, text: str) -> None:
    with pytest.raises(ClusterError) as caught:
        NewTask.of({**FIELDS, key: text}).text()
    assert caught.value.code == "CLUSTER-059"
    assert f"'{text}'" in caught.value.cause


def sent(browser: httpx.Client, step: str, code: int = 200, **fields: str) -> PageText:
    csrf = read(browser, "new-task").hidden("csrf")
    answer = browser.post("new-task", data={**FIELDS, **fields, "csrf": csrf, "step": step})
    assert answer.status_code == code, answer.text
    assert "it&#39;s-hush" not in answer.text
    assert SECRET not in answer.text
    return PageText(answer.text)


def test_it_is_shown_checked_and_started(page: PageServed) -> None:
    with client(page, "oda") as browser:
        assert "new-task" in str(read(browser, "").links())
        shown = sent(browser, "show")
        assert "task-mode: full" in shown.text
        assert "password: '******'" in shown.text
        assert "The checks pass" in sent(browser, "check").text
        assert "second" not in page.master.cluster.state.tasks
        assert "Started." in sent(browser, "start").text
        assert page.master.cluster.state.subtasks["second", "s1"].source == "s1"
        assert "second" in read(browser, "").text
        assert "CLUSTER-007" in sent(browser, "start", 422).text
    assert SECRET not in page.audit.read_text()
    assert "POST /ui/new-task" in page.audit.read_text()


def test_faults_are_told_and_hostile_fields_are_text(page: PageServed) -> None:
    with client(page, "oda") as browser:
        assert "CONFIG-001" in sent(browser, "check", 422, user="", port="x").text
        hostile = sent(browser, "check", 422, name=HOSTILE, take=HOSTILE)
        assert HOSTILE in hostile.text
        assert not [tag for tag, attrs in hostile.tags if tag == "script" and not attrs]


def test_a_viewer_makes_no_task(page: PageServed) -> None:
    with client(page, "vic") as browser:
        assert "new-task" not in str(read(browser, "").links())
        assert browser.get("new-task").status_code == 403
        csrf = read(browser, "").hidden("csrf")
        assert browser.post("new-task", data={**FIELDS, "csrf": csrf, "step": "start"}).status_code == 403
    assert "second" not in page.master.cluster.state.tasks
