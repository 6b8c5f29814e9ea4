"""The bench of open pages, with few of them: its pages are read, and its figures add up."""

from __future__ import annotations

import pytest

from bench import open_pages


def test_a_few_pages_of_a_small_task(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(open_pages, "_LOOKS", 1)
    found = open_pages.run(tables=5, pages=3)
    assert (found["tables"], found["pages"]) == (5, 3)
    assert found["core_share"] == pytest.approx((found["open_ms"] - found["idle_ms"]) / 2000, abs=0.001)
