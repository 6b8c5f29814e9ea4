"""What can be done without a master: the files tell where the task's records are."""

from __future__ import annotations

import getpass
import socket
from collections.abc import Sequence
from contextlib import suppress

from unshard.config.files import load_source, load_task
from unshard.ctl.words import source_files
from unshard.operate.subject import Subject


def subject(task: str, source_words: Sequence[str]) -> Subject:
    """The task of a file, with the sources whose files were named.

    Raises ConfigError.
    """
    return Subject.of_files(load_task(task), [load_source(file) for file in source_files(source_words)])


def who() -> str:
    """Who gives the command, for the record of it."""
    with suppress(OSError, KeyError):
        return f"{getpass.getuser()}@{socket.gethostname()}"
    return "unknown"
