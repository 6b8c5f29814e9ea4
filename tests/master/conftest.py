"""A master without HTTP, and workers that obey at once."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from cluster_rig import Rig


@pytest.fixture
def rig(tmp_path: Path) -> Iterator[Rig]:
    """One master on SQLite that leads; no worker yet."""
    with Rig(f"sqlite:///{tmp_path / 'master.db'}") as found:
        yield found
