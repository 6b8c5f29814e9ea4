"""The task whose ends most comparisons of this folder compare."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from support.comparisons import in_this_process, not_followed
from support.task_runs import TaskFiles
from unshard.testing.throwaway_server import ThrowawayServer


@pytest.fixture
def files(
    source_server: ThrowawayServer,
    target_server: ThrowawayServer,
    schema: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> Iterator[TaskFiles]:
    """A task that copies an empty schema and does not follow. It is compared in this process, without Spark."""
    in_this_process(monkeypatch)
    with not_followed(source_server, target_server, schema, tmp_path) as files:
        yield files
