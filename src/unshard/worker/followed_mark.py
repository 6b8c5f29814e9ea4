"""A mark beside the relay log that the target has had a checkpoint of a task.

`unshard run` keeps nothing else of a task on its machine. Without the mark a task whose checkpoint somebody has dropped
from the target looks as one that has never begun.
"""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from urllib.parse import quote

from unshard.config.subtask import SubtaskConfig
from unshard.relay.meta import disk, replace_whole


@dataclass(frozen=True, slots=True)
class FollowedMark:
    """The mark of one task and source. `text` names the target: the mark of another target is none."""

    path: Path
    text: str

    @classmethod
    def of(cls, config: SubtaskConfig) -> FollowedMark:
        """Return the mark in the source's relay folder on this machine, written or not."""
        folder = Path(config.source.relay_dir).absolute() / config.source_id
        form = {"target": f"{config.target.host}:{config.target.port}", "meta-schema": config.meta_schema}
        return cls(folder / f"{quote(config.name, safe='')}.followed", json.dumps(form))

    def is_written(self) -> bool:
        """Return whether the target has had a checkpoint of the task."""
        try:
            return self.path.read_text() == self.text
        except OSError:
            return False

    def write(self) -> None:
        """Write the mark, where it is not there yet. Raises RelayError 013, 014."""
        if not self.is_written():
            with disk(self.path):
                self.path.parent.mkdir(parents=True, exist_ok=True)
                replace_whole(self.path, self.text)

    def remove(self) -> None:
        """Remove the mark, where it is there. Raises RelayError 013, 014."""
        with disk(self.path):
            self.path.unlink(missing_ok=True)
