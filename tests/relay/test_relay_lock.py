"""A relay folder has one writer."""

from __future__ import annotations

from pathlib import Path

import pytest

from unshard.errors import RelayError
from unshard.relay.folder_lock import FolderLock


def test_a_second_writer_is_refused_until_the_first_ends(tmp_path: Path) -> None:
    first, second = FolderLock(tmp_path / "relay"), FolderLock(tmp_path / "relay")
    first.take()
    first.take()
    with pytest.raises(RelayError, match="RELAY-021"):
        second.take()
    first.release()
    second.take()
    second.release()


def test_a_folder_that_cannot_be_made_is_told_with_its_place(tmp_path: Path) -> None:
    (tmp_path / "file").touch()
    with pytest.raises(RelayError, match=r"RELAY-014.*file/relay"):
        FolderLock(tmp_path / "file" / "relay").take()
