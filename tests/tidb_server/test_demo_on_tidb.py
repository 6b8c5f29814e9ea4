"""The demo with a TiDB as its target."""

from __future__ import annotations

import pytest

from support.demo_run import assert_demo_proves

pytestmark = [pytest.mark.server, pytest.mark.spark, pytest.mark.recovery]


def test_the_demo_kills_goes_on_and_proves_it_into_tidb() -> None:
    text = assert_demo_proves("--target", "tidb")
    assert "TiDB on port" in text
    assert "Counted in the row versions that the target keeps:" in text


def test_the_same_from_mysql() -> None:
    text = assert_demo_proves("--source", "mysql", "--target", "tidb")
    assert "MySQL on port" in text
    assert "Counted in the row versions that the target keeps:" in text
