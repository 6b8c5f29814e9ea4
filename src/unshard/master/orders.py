"""What a worker is to do, from the state: pure."""

from __future__ import annotations

from functools import lru_cache
from typing import Any

from unshard.api.orders import SourceOrder, SubtaskOrder
from unshard.api.stage import Stage
from unshard.config.database import DatabaseConfig
from unshard.config.files import parse_source, parse_task
from unshard.config.secret import read_secret
from unshard.config.section import Section
from unshard.config.source import SourceConfig
from unshard.config.subtask import SubtaskConfig, plan_subtask
from unshard.config.task import MetaConfig, TaskConfig
from unshard.errors import UnshardError
from unshard.log import logger
from unshard.master.state import Bound, SourceRow, State, SubtaskRow, TaskRow

_KEPT = 4096
"""Texts whose reading is remembered: every beat asks for them."""


def source_config(row: SourceRow) -> SourceConfig:
    """Raises ConfigError where the stored text is none any more (of another version)."""
    config = _source(row.text, row.name)
    return config if config.enable == row.enabled else config.model_copy(update={"enable": row.enabled})


def task_config(row: TaskRow) -> TaskConfig:
    return _task(row.text, row.name)


def subtask_config(state: State, row: SubtaskRow) -> SubtaskConfig:
    source = source_config(state.sources[row.source])
    return with_start(plan_subtask(task_config(state.tasks[row.task]), source), row.start)


def same_login(old: DatabaseConfig, new: DatabaseConfig) -> bool:
    """Whether two sections are the same, whichever form their password is written in.

    A password is kept encrypted where the master has a key, so the text that a user gives differs from the kept one.
    """
    if old.model_copy(update={"password": ""}) != new.model_copy(update={"password": ""}):
        return False
    return old.password == new.password or opened(old.password) == opened(new.password)


def opened(password: str) -> str:
    """A plain or encrypted password in plain; a reference as it is."""
    return password if password.startswith(("env:", "file:")) else read_secret(password)


def with_start(config: SubtaskConfig, start: str) -> SubtaskConfig:
    if not start:
        return config
    return config.model_copy(update={"start": MetaConfig.model_validate_json(start)})


def order_of(state: State, bound: Bound, *, held: bool = False) -> SourceOrder:
    """All that the worker of that bound is to do. A task that can't be read is left out, and logged.

    `held`: what runs is to stand still for a moment.
    """
    row = state.sources[bound.source]
    found = []
    for subtask in state.of_source(bound.source):
        task = state.tasks[subtask.task]
        try:
            form = _subtask_form(task.text, task.name, row.text, row.name, row.enabled, subtask.start)
        except UnshardError as error:
            logger("master", source=row.name, task=task.name).error("task can't be read", **error.to_dict())
            continue
        stage = Stage.PAUSED if held and subtask.stage is Stage.RUNNING else subtask.stage
        stage = stage if row.enabled else Stage.STOPPED
        kept = subtask.brief
        found.append(SubtaskOrder(task=subtask.task, stage=stage, revision=subtask.revision, config=form, kept=kept))
    return SourceOrder(
        source=row.name,
        epoch=bound.epoch,
        cluster=state.cluster,
        config=sent_form(source_config(row)),
        relay_stage=row.relay_stage,
        subtasks=tuple(found),
    )


@lru_cache(_KEPT)
def _source(text: str, name: str) -> SourceConfig:
    return parse_source(text, name)


@lru_cache(_KEPT)
def _task(text: str, name: str) -> TaskConfig:
    return parse_task(text, name)


@lru_cache(_KEPT)
def _subtask_form(task: str, name: str, source: str, source_name: str, enabled: bool, start: str) -> dict[str, Any]:
    config = source_config(SourceRow(source_name, source, enabled))
    return sent_form(with_start(plan_subtask(_task(task, name), config), start))


def sent_form(config: Section) -> dict[str, Any]:
    """What a worker is sent: a key that asks for nothing is left out, for an earlier version may not know it."""
    return config.model_dump(mode="json", by_alias=True, exclude_defaults=True)
