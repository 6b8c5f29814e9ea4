"""Fixture `files`: the smallest task and source, changed ones, and what those are refused with."""

from __future__ import annotations

from typing import Any

import pytest
import yaml

from unshard.config.files import parse_source, parse_task
from unshard.config.source import SourceConfig
from unshard.config.task import TaskConfig
from unshard.errors import ConfigError


class Files:
    """Task and source files as data. Keys in `changes` are written with `_` for `-`; None takes a key out."""

    def task(self, **changes: Any) -> dict[str, Any]:
        return _changed(
            {
                "name": "t",
                "task-mode": "all",
                "target-database": {"host": "127.0.0.1", "port": 4000, "user": "root"},
                "mysql-instances": [{"source-id": "s1"}],
            },
            changes,
        )

    def source(self, **changes: Any) -> dict[str, Any]:
        server = {"host": "127.0.0.1", "port": 3306, "user": "root"}
        return _changed({"source-id": "s1", "from": server}, changes)

    def read_task(self, **changes: Any) -> TaskConfig:
        return parse_task(yaml.safe_dump(self.task(**changes), sort_keys=False), "task.yaml")

    def read_source(self, **changes: Any) -> SourceConfig:
        return parse_source(yaml.safe_dump(self.source(**changes), sort_keys=False), "source.yaml")

    def task_problems(self, **changes: Any) -> list[str]:
        """The problems of a changed task, without their lines; fails when there are none."""
        with pytest.raises(ConfigError) as caught:
            self.read_task(**changes)
        return _problems(caught.value)

    def source_problems(self, **changes: Any) -> list[str]:
        """The problems of a changed source, without their lines; fails when there are none."""
        with pytest.raises(ConfigError) as caught:
            self.read_source(**changes)
        return _problems(caught.value)


def _changed(data: dict[str, Any], changes: dict[str, Any]) -> dict[str, Any]:
    as_written = {"collation_compatible"}
    data.update({key if key in as_written else key.replace("_", "-"): value for key, value in changes.items()})
    return {key: value for key, value in data.items() if value is not None}


def _problems(error: ConfigError) -> list[str]:
    assert error.code == "CONFIG-001"
    lines = [line.strip() for line in error.cause.splitlines()]
    assert error.values == {"count": len(lines)}
    assert all(line.startswith("line ") for line in lines)
    return [line.partition(": ")[2] for line in lines]


@pytest.fixture
def files() -> Files:
    return Files()
