"""Commands that need no master: the task file shows where the task's records are. Imported only on demand.

Imported only when one of them is used. `check-task` runs the checks before a start and returns dmctl's answer.
"""

from __future__ import annotations

import getpass
import shlex
import socket
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from unshard.api.verbs import Binlog, BinlogSchema, CheckTask, ShardDdlLock, ShardDdlLockUnlock, Validation
from unshard.checks.run import check_task, opt_in_names
from unshard.config.files import TaskFiles, read_files
from unshard.config.subtask import SubtaskConfig
from unshard.config.task import TaskConfig
from unshard.ctl.words import source_files
from unshard.master.beginning import at_time, starts_of, with_starts
from unshard.operate.binlog import answer_binlog
from unshard.operate.binlog_schema import answer_schema
from unshard.operate.locks import answer_locks, answer_unlock
from unshard.operate.subject import Subject, wrong_use
from unshard.operate.validation import answer_validation


def answer_check(task: TaskConfig, configs: Sequence[SubtaskConfig], request: CheckTask) -> dict[str, Any]:
    """Return the report, with at most the wanted numbers of errors and warnings. Changes nothing.

    Raises as `check_task`, and ClusterError CLUSTER-047 for an opt-in item that is none.
    """
    unknown = sorted(set(request.also).difference(opt_in_names()))
    if unknown:
        raise wrong_use(f"--also takes {', '.join(opt_in_names())}, not {unknown[0]}")
    return check_task(task, configs, request.also).to_dict(request.err_cnt, request.warn_cnt)


def check(files: TaskFiles, request: CheckTask) -> dict[str, Any]:
    """As `answer_check`. Raises ClusterError CLUSTER-016."""
    starts = starts_of(files.subtasks, request.start_time, at_time)
    return with_starts(answer_check(files.task, files.subtasks, request), starts)


def binlog(task: str, source_words: Sequence[str], request: Binlog) -> dict[str, Any]:
    """As `answer_binlog`; `task` is a file."""
    return answer_binlog(_subject(task, source_words), request, _who())


def schema(task: str, source_words: Sequence[str], request: BinlogSchema) -> dict[str, Any]:
    """As `answer_schema`; `task` is a file."""
    return answer_schema(_subject(task, source_words), request)


def locks(task: str, source_words: Sequence[str], request: ShardDdlLock) -> dict[str, Any]:
    """As `answer_locks`; `task` is a file, and the commands that help name it."""
    flags = [word for file in source_files(source_words) for word in ("-s", file)]
    return answer_locks([_subject(task, source_words)], request, files=shlex.join([task, *flags]))


def unlock(task: str, source_words: Sequence[str], request: ShardDdlLockUnlock) -> dict[str, Any]:
    """As `answer_unlock`; `task` is the file of the lock's task."""
    return answer_unlock(_subject(task, source_words), request, _who())


def validation(task: str, source_words: Sequence[str], request: Validation) -> dict[str, Any]:
    """As `answer_validation`; `task` is a file."""
    return answer_validation([_subject(task, source_words)], request, _who())


def _subject(task: str, source_words: Sequence[str]) -> Subject:
    """Return the task of a file, with the sources whose files were named. Raises ConfigError."""
    config, sources, _ = read_files(Path(task), [Path(file) for file in source_files(source_words)])
    return Subject.of_files(config, sources)


def _who() -> str:
    """Return the name of the user who gives the command, for the record of it."""
    with suppress(OSError, KeyError):
        return f"{getpass.getuser()}@{socket.gethostname()}"
    return "unknown"
