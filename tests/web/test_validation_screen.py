"""The screen of continuous validation: figures, rows that differ, roles, how often the target is asked."""

from __future__ import annotations

from pathlib import Path
from threading import Event

from page_served import HOSTILE, PageServed, differing, page_served, status, validation
from test_page import client, read

from support.waiting import wait_until
from unshard.errors import ClusterError
from unshard.web.page import validation as screen
from unshard.web.page.actions import ACTIONS
from unshard.web.page.validation import validator_figures

PATH = "tasks/shop/validation"


def test_figures_of_a_source_and_how_far_it_is_behind() -> None:
    told = validation(2)
    one = validator_figures(told, "(mysql-bin.000003, 3500)")
    assert (one.new, one.ignored, one.resolved, one.pending, one.processed) == (2, 1, 3, 3, 100)
    assert (one.kind, one.behind) == ("fine", "2.5 kB")
    assert validator_figures(told, "(mysql-bin.000003, 1000)").behind == "nothing"
    assert validator_figures(told, "(mysql-bin.000005, 4)").behind == "2 files"
    for place in ("", "(nothing, 4)"):
        assert validator_figures(told, place).behind == "unknown"
    unknown = validator_figures(told.model_copy(update={"error_rows_status": "", "pending_rows_status": "x: 1"}), "")
    assert (unknown.new, unknown.pending) == (None, None), "unknown, never 0"
    assert validator_figures(validation(fault="TARGET-001"), "").kind == "error"


def test_rows_that_differ_with_their_columns_and_actions(tmp_path: Path) -> None:
    with page_served(tmp_path, status(validated=validation(30))) as page, client(page, "oda") as browser:
        page.target_has(differing(30), stopped=130)
        page.set(status(validated=validation(31)))
        wait_until(lambda: "page 1 of 3" in read(browser, PATH).text, "the record is read")
        html, found = browser.get(PATH).text, read(browser, PATH)
        assert html.count('class="differs"') == 8, "two columns of each fourth row of twelve"
        assert html.count("≠") == 8, "two columns of each fourth row of twelve"
        assert "<script>alert" not in html
        assert f"old {HOSTILE}" in found.text
        assert "no row" in found.text
        assert "NULL" in found.text
        assert "1 table with changed rows is validated, 130 can't be" in found.text
        links = [link for link in found.links() if "validation-ignore-error" in link]
        assert "../../do/validation-ignore-error?task=shop&sources=s1&id=1" in links
        assert len(html) < 100_000
        assert "Rows that differ" in read(browser, "tasks/shop/validation?q=ORDERS_00004").text
        assert "1 row, page 1" in read(browser, "tasks/shop/validation?q=ORDERS_00004").text
        assert "31 rows of task shop differ" in read(browser, "").text
        assert "31 rows of task shop differ" in read(browser, "tasks/shop").text
        assert read(browser, "tasks/none/validation", 404)


def test_a_viewer_sees_no_row_and_no_button(tmp_path: Path) -> None:
    with page_served(tmp_path, status(validated=validation())) as page, client(page, "vic") as browser:
        asked = page.target_has(differing(3))
        wait_until(lambda: "can't be" in read(browser, PATH).text, "the record is read")
        found = read(browser, PATH)
        assert "Only operators see rows" in found.text
        assert "19.90" not in found.text
        assert not [link for link in found.links() if "do/" in link]
        assert {one.op for one in asked} == {"status"}
        for name in (one for one in ACTIONS if one.startswith("validation-")):
            assert browser.get(f"do/{name}").status_code == 403


def test_without_a_validator_and_while_the_target_is_asked_or_silent(tmp_path: Path) -> None:
    with page_served(tmp_path, status()) as page, client(page, "oda") as browser:
        reader = page.server._app.state.page.validations
        page.target_has([])
        wait_until(lambda: "has a validator" in read(browser, PATH).text, "no validator")
        assert "unshard ctl validation start shop" in read(browser, PATH).text

        released = Event()

        def slow(asked: object) -> dict[str, object]:
            assert released.wait(600)
            raise ClusterError("CLUSTER-047", cause="it sleeps")

        page.set(status(validated=validation()))
        reader._answer = slow
        reader.forget("shop")
        page.set(status(lag=4, validated=validation()))
        assert "records are being read" in read(browser, PATH).text, "no page waits for the target"
        released.set()
        wait_until(lambda: "can't be read" in read(browser, PATH).text, "the reading has failed")
        assert "it sleeps" in read(browser, PATH).text
        assert "New" in read(browser, PATH).text


def test_the_target_is_asked_once_for_all_pages_and_again_when_the_record_has_changed(tmp_path: Path) -> None:
    with page_served(tmp_path, status(validated=validation(2))) as page:
        asked = page.target_has(differing(2))
        with client(page, "oda") as one, client(page, "ada") as other:
            wait_until(lambda: "2 rows, page" in read(one, PATH).text, "the record is read")
            for lag in range(20):
                page.set(status(lag=lag, validated=validation(2)))
                assert {browser.get(PATH).status_code for browser in (one, other)} == {200}
            assert len(asked) == 2, "its status and its errors, once"
            _older(page)
            page.target_has(differing(3)).extend(asked)
            page.set(status(validated=validation(3)))
            wait_until(lambda: "3 rows, page" in read(other, PATH).text, "it is read again")
        asked = page.target_has(differing(2))
        page.server._app.state.page.validations._watched.clear()
        _older(page)
        page.set(status(validated=validation(2)))
        assert asked == [], "nobody looks"


def _older(page: PageServed) -> None:
    """The readings are as old as they have to be before the next one."""
    reader = page.server._app.state.page.validations
    for one in reader._found.values():
        object.__setattr__(one, "at", one.at - screen.AGAIN_SECONDS)


def test_forms_ask_what_ctl_asks_and_show_its_line() -> None:
    given = {"task": "shop", "sources": "s1", "id": "7"}
    lines = {
        "start": "validation start shop --mode fast -s s1",
        "stop": "validation stop shop -s s1",
        "ignore-error": "validation ignore-error shop 7 -s s1",
        "resolve-error": "validation resolve-error shop 7 -s s1",
        "clear-error": "validation clear-error shop 7 -s s1",
    }
    for op, line in lines.items():
        form = {**given, **({"mode": "fast"} if op == "start" else {})}
        action = ACTIONS[f"validation-{op}"]
        assert action.equal_command(form) == f"unshard ctl {line}"
        request = action.request(form).model_dump(exclude_defaults=True)
        told = {"op": op, "task": "shop", "sources": ("s1",)}
        assert request == {**told, **({"mode": "fast"} if op == "start" else {"id": 7} if "error" in op else {})}
    every = {"task": "shop"}
    assert ACTIONS["validation-clear-error"].equal_command(every).endswith("clear-error shop --all")
    assert ACTIONS["validation-clear-error"].request(every).model_dump(exclude_defaults=True)["all"] is True
