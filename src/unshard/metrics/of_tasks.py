"""Metrics of tasks in general: their state, errors, and waiting times."""

from __future__ import annotations

from unshard.metrics.metric import Alert, Metric, Panel, PanelQuery, graph

ROW = "Tasks"
TASK = ("task", "source_id")
DM_TASK = ("task", "source_id", "worker")
HERE = 'task=~"$task",source_id=~"$source"'
WHO = "{{task}} {{source_id}}"


def exits(name: str, unit: str, alert: str) -> Metric:
    """Return the counter of a unit that ended with an error, with DM's alert."""
    return Metric(
        name,
        "counter",
        (*TASK, "resumable_err"),
        "errors",
        f"Times that {unit} ended by an error. resumable_err tells whether it is worth another try by itself.",
        panels=(
            graph(
                "Errors",
                f"{unit} ends by an error",
                "short",
                (f"increase({name}{{{HERE}}}[1m])", WHO),
            ),
        ),
        alerts=(
            Alert(
                alert,
                f'changes({name}{{resumable_err="false"}}[1m]) > 0 or increase({name}{{resumable_err="true"}}[2m]) > 3',
                "0m",
                "critical",
                f"{unit} of task {{{{ $labels.task }}}} ended by an error on source {{{{ $labels.source_id }}}}",
                "query-status shows the error, its place, and what to do",
            ),
        ),
    )


METRICS = (
    Metric(
        "dm_worker_task_state",
        "gauge",
        DM_TASK,
        "",
        "Stage of a subtask: 1 New, 2 Running, 3 Paused. The series ends when it is Stopped or Finished.",
        panels=(
            Panel(
                ROW,
                "Running subtasks",
                (PanelQuery('count(dm_worker_task_state{task=~"$task"} == 2) or vector(0)', "running"),),
            ),
            graph(
                ROW,
                "Stage (1 New, 2 Running, 3 Paused)",
                "short",
                (f"dm_worker_task_state{{{HERE}}}", WHO),
            ),
        ),
        alerts=(
            Alert(
                "DM_task_state",
                "dm_worker_task_state == 3",
                "20m",
                "critical",
                "task {{ $labels.task }} has been paused for 20 minutes on source {{ $labels.source_id }}",
                "query-status shows why it stands still; resume-task when it is mended",
            ),
        ),
    ),
    Metric(
        "unshard_unit_seconds",
        "gauge",
        (*TASK, "unit"),
        "seconds",
        "How long the subtask has been in the unit it is in (dump, load, sync).",
        panels=(graph(ROW, "Unit", "s", (f"unshard_unit_seconds{{{HERE}}}", "{{task}} {{source_id}} {{unit}}")),),
    ),
    Metric(
        "dm_worker_operate_error",
        "counter",
        ("worker", "type"),
        "errors",
        "Starts of subtasks that failed before a unit began, by type: Start, Resume, AutoResume.",
        panels=(
            graph(
                "Errors",
                "Operations that failed",
                "short",
                ('increase(dm_worker_operate_error{worker=~"$worker"}[1m])', "{{worker}} {{type}}"),
            ),
        ),
    ),
    Metric(
        "unshard_retries_total",
        "counter",
        TASK,
        "attempts",
        "Calls of a server that failed and were made again, in this process and in Spark's tasks.",
        panels=(
            graph(
                "Errors",
                "Calls made again",
                "ops",
                (f"rate(unshard_retries_total{{{HERE}}}[1m])", WHO),
            ),
        ),
        alerts=(
            Alert(
                "Unshard_many_retries",
                "rate(unshard_retries_total[5m]) > 1",
                "10m",
                "warning",
                "task {{ $labels.task }} makes more than one call a second again on source {{ $labels.source_id }}",
                "the log tells which server fails, and how; look for deadlocks, lost connections, a full disk",
            ),
        ),
    ),
    Metric(
        "unshard_throttle_wait_seconds_total",
        "counter",
        TASK,
        "seconds",
        "Time that writers to the target waited for max-rows-per-second and max-connections, all connections together.",
        panels=(
            graph(
                ROW,
                "Waiting for the target's limits",
                "short",
                (f"rate(unshard_throttle_wait_seconds_total{{{HERE}}}[1m])", WHO),
            ),
        ),
    ),
)
