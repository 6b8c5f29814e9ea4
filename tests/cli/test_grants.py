"""The grants of the tutorial are enough for a task."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.tutorial_grants import copied_and_followed
from unshard.testing.mariadb_server import MariadbServer

pytestmark = pytest.mark.scenarios


@pytest.mark.server
@pytest.mark.spark
def test_the_grants_of_the_tutorial_are_enough(tmp_path: Path) -> None:
    with MariadbServer() as target:
        copied_and_followed(target, tmp_path)
