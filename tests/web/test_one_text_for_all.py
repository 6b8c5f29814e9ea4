"""Each screen of a snapshot is rendered once, however many browsers ask for it at the same time."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from threading import Barrier, Event
from typing import Any

import httpx
import pytest
from page_served import page_served, status
from served import bearer

from unshard.web.page.screens import KeptTexts, PageScreens

MANY = 20


def test_one_makes_the_text_and_the_others_wait_for_it() -> None:
    texts, made, may_end, all_ask = KeptTexts(), list[int](), Event(), Barrier(MANY)

    def make() -> str:
        made.append(1)
        may_end.wait(60)
        return "text"

    def ask(_: int) -> str:
        all_ask.wait(60)
        return texts.get(1, ("overview",), make)

    with ThreadPoolExecutor(MANY + 1) as pool:
        asked = [pool.submit(ask, number) for number in range(MANY)]
        other = pool.submit(lambda: texts.get(1, ("errors",), lambda: "another text"))
        assert other.result(60) == "another text", "another screen does not wait for it"
        may_end.set()
        assert [one.result(60) for one in asked] == ["text"] * MANY
    assert made == [1]


def test_the_texts_of_one_snapshot_are_not_those_of_the_next() -> None:
    texts = KeptTexts()
    assert texts.get(1, ("a",), lambda: "of 1") == "of 1"
    assert texts.get(2, ("a",), lambda: "of 2") == "of 2"
    assert texts.get(1, ("a",), lambda: "late") == "late", "who has an older one gets that"
    assert texts.get(2, ("a",), lambda: "made again") == "of 2"


def test_a_text_that_can_not_be_made_is_tried_again() -> None:
    texts = KeptTexts()

    def fail() -> str:
        raise ValueError("no such task")

    for _ in range(2):
        with pytest.raises(ValueError, match="no such task"):
            texts.get(1, ("a",), fail)
    assert texts.get(1, ("a",), lambda: "text") == "text"


def test_many_browsers_that_ask_at_once_cost_one_rendering(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As they do: each of them is told at the same moment that there is a new snapshot."""
    made: list[str] = []
    render, may_end = PageScreens.render, Event()

    def counted(screens: PageScreens, request: Any, template: str, **values: Any) -> str:
        made.append(template)
        may_end.wait(60)
        return render(screens, request, template, **values)

    with page_served(tmp_path, status()) as page:
        reader = page.server._app.state.page
        reader.stop()  # each look is one of the test
        page.set(status(lag=7))
        monkeypatch.setattr(PageScreens, "render", counted)

        def ask(_: int) -> str:
            answer = httpx.get(page.url, headers=bearer("vic"), timeout=60)
            assert answer.status_code == 200
            return answer.text

        with ThreadPoolExecutor(MANY) as pool:
            asked = [pool.submit(ask, number) for number in range(MANY)]
            may_end.wait(0.2)  # none of them can end before
            may_end.set()
            texts = {one.result(60) for one in asked}
    assert len(texts) == 1
    assert made == ["overview.html"]


def test_the_points_of_a_chart_are_written_out_once_for_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with page_served(tmp_path, status()) as page:
        reader = page.server._app.state.page
        reader.stop()
        asked: list[str] = []
        history = reader.history

        def counted(task: str) -> object:
            asked.append(task)
            return history(task)

        monkeypatch.setattr(reader, "history", counted)
        found = {
            httpx.get(f"{page.url}tasks/shop/history", headers=bearer("vic"), timeout=60).text for _ in range(MANY)
        }
        assert len(found) == 1
        assert asked == ["shop"]
        reader._due = 0.0
        page.set(status(lag=9))
        assert httpx.get(f"{page.url}tasks/shop/history", headers=bearer("vic"), timeout=60).json()["s1"][-1][1] == 9
