"""A task that rests, lags or has failed, as the overview and its own screen show it."""

from __future__ import annotations

from pathlib import Path

import pytest
from page_served import SINCE, PageServed, page_served, status
from test_page import client, page, read, served_page

from unshard.api.status import ProcessResult, RelayStatus, Stage

__all__ = ["page", "served_page"]


@pytest.mark.parametrize(
    ("stage", "says"), [(Stage.PAUSED, "Task shop is paused"), (Stage.STOPPED, "Task shop is stopped")]
)
def test_a_task_that_rests_is_not_fine(tmp_path: Path, stage: Stage, says: str) -> None:
    """On the overview and on its own screen, each with since when; and there is nothing to pause."""
    with page_served(tmp_path, status()) as page, client(page, "oda") as browser:
        told = {"stage": stage, "since": SINCE, "result": ProcessResult(is_canceled=stage is Stage.PAUSED)}
        page.set(status().model_copy(update=told))
        for path in ("", "tasks/shop"):
            found = read(browser, path)
            assert says in found.text
            assert "All is fine" not in found.text
            assert f"since {SINCE.replace('T', ' ').replace('+00:00', ' UTC')}" in found.text
        links = read(browser, "tasks/shop").links()
        assert [link for link in links if "do/pause-task" in link] == []
        assert [link for link in links if "do/resume-task" in link] != []


@pytest.mark.parametrize(
    ("relay", "offered"),
    [
        (RelayStatus(stage=Stage.RUNNING), ["pause-relay"]),
        (RelayStatus(stage=Stage.PAUSED), ["resume-relay"]),
        (RelayStatus(stage=Stage.STOPPED), []),
        (None, []),
    ],
)
def test_a_relay_is_paused_where_it_runs_and_resumed_where_it_is_paused(
    page: PageServed, relay: RelayStatus | None, offered: list[str]
) -> None:
    page.link.relay = relay
    page.set(status())
    with client(page, "oda") as browser:
        links = read(browser, "cluster").links()
        assert [link.partition("do/")[2].partition("?")[0] for link in links if "-relay" in link] == offered


def test_nothing_contradicts_an_error_on_its_screen(page: PageServed) -> None:
    with client(page, "oda") as browser:
        found = read(browser, "tasks/shop")
        assert "SYNC-011" in found.text
        assert "1,234" not in found.text, "no rate"
        assert "replicates" not in found.text
        assert "do/pause-task" not in str(found.links())
        page.set(status())
        found = read(browser, "tasks/shop")
        assert "1,234" in found.text
        assert "do/resume-task" not in str(found.links())
