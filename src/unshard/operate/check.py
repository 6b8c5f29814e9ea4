"""`check-task`: the checks before a start, as dmctl's answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from unshard.api.verbs import CheckTask
from unshard.checks.items import opt_in_names
from unshard.checks.run import check_task
from unshard.config.subtask import SubtaskConfig
from unshard.config.task import TaskConfig
from unshard.operate.subject import wrong_use


def answer_check(task: TaskConfig, configs: Sequence[SubtaskConfig], request: CheckTask) -> dict[str, Any]:
    """The report, cut to the most that was asked for. `task` is that of the request; changes nothing.

    Raises as `check_task`, and ClusterError CLUSTER-047 for an opt-in item that is none.
    """
    unknown = sorted(set(request.also).difference(opt_in_names()))
    if unknown:
        raise wrong_use(f"--also takes {', '.join(opt_in_names())}, not {unknown[0]}")
    return check_task(task, configs, request.also).to_dict(request.err_cnt, request.warn_cnt)
