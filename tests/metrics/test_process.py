"""What a process tells of itself and of its disk."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from unshard.metrics.sample import free_share, own_version


def test_the_disk_is_that_of_the_folder_or_of_where_it_will_be(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[Path] = []
    space = shutil.disk_usage(tmp_path)

    def usage(path: Path) -> object:
        asked.append(path)
        return space._replace(total=400, free=100)

    monkeypatch.setattr(shutil, "disk_usage", usage)
    assert free_share(tmp_path / "later" / "s1") == 0.25
    assert asked == [tmp_path]


def test_a_disk_that_does_not_answer_is_unknown(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def usage(path: Path) -> object:
        raise OSError(5, "Input/output error", str(path))

    monkeypatch.setattr(shutil, "disk_usage", usage)
    assert free_share(tmp_path) is None


def test_the_version_is_that_of_the_installation() -> None:
    assert own_version()[0].isdigit()
