"""Computes a worker's orders from the cluster's state. Pure."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Mapping
from functools import lru_cache, partial
from typing import Any, TypeVar

from unshard.api.heartbeat import SourceOrder, SubtaskOrder, unread_source, unread_task
from unshard.api.status import Stage
from unshard.config.database import DatabaseConfig
from unshard.config.files import parse_source, parse_task
from unshard.config.secret import read_secret
from unshard.config.section import Section
from unshard.config.source import SourceConfig
from unshard.config.subtask import SubtaskConfig, plan_subtask
from unshard.config.task import MetaConfig, TaskConfig
from unshard.errors import ClusterError, ConfigError
from unshard.log import logger
from unshard.master.state import Bound, SourceRow, State, SubtaskRow, TaskRow

Config = TypeVar("Config", bound=Section)
_KEPT = 4096
"""The number of texts whose parsed form is remembered: every beat asks for them."""
_LOOKS_AGAIN_SECONDS = 5.0
"""How long a text that can't be read is remembered as such: a file that it names may exist later."""
_SENT = 16384
"""The number of subtasks whose config is remembered, of about 5 KB each.

Beats go round all subtasks there are: with one more than this number, none would be found.
"""


def source_config(row: SourceRow) -> SourceConfig:
    """Parse a source's file. Raises ClusterError CLUSTER-091 where the stored text is invalid (of another version)."""
    try:
        config = _read(_source, row.text, row.name)
    except ConfigError as error:
        raise unread_source(row.name, _in_short(error)) from None
    return config if config.enable == row.enabled else config.model_copy(update={"enable": row.enabled})


def task_config(row: TaskRow) -> TaskConfig:
    """Parse a task's file. Raises ClusterError CLUSTER-091 as `source_config`."""
    try:
        return _read(_task, row.text, row.name)
    except ConfigError as error:
        raise unread_task(row.name, _in_short(error)) from None


def unread(state: State, sources: Iterable[str], tasks: Iterable[str]) -> list[ClusterError]:
    """Return the errors of those of these files that can't be read."""
    files: list[Callable[[], Section]] = [
        *(partial(source_config, state.sources[name]) for name in sources if name in state.sources),
        *(partial(task_config, state.tasks[name]) for name in tasks if name in state.tasks),
    ]
    found = []
    for read in files:
        try:
            read()
        except ClusterError as error:
            found.append(error)
    return found


def _in_short(error: ConfigError) -> str:
    return f"{error.code}: {error.message}: {error.cause}"


def subtask_config(state: State, row: SubtaskRow) -> SubtaskConfig:
    """Return the settings that the worker needs for the subtask. Raises ConfigError."""
    source = source_config(state.sources[row.source])
    config = plan_subtask(task_config(state.tasks[row.task]), source)
    return with_start(config, row.start, attempt_of(state, row.task))


def same_login(old: DatabaseConfig, new: DatabaseConfig) -> bool:
    """Return whether two sections are the same, whichever form their password and private key are written in.

    They are stored encrypted where the master has a key, so the text that a user gives differs from the stored one. An
    old one that no key opens any more is another one. Raises ConfigError where a new one can't be opened.
    """
    if _bare(old) != _bare(new):
        return False
    return all(map(_is_same, _secrets(old), _secrets(new)))


def _bare(database: DatabaseConfig) -> DatabaseConfig:
    security = database.security.model_copy(update={"ssl_key_bytes": "", "ssl_key_base64": ""})
    return database.model_copy(update={"password": "", "security": security})


def _secrets(database: DatabaseConfig) -> tuple[str, ...]:
    security = database.security
    return database.password, security.ssl_key_bytes, security.ssl_key_base64


def _is_same(old: str, new: str) -> bool:
    if old == new:
        return True
    given = opened(new)
    try:
        return opened(old) == given
    except ConfigError:
        return False


def opened(password: str) -> str:
    """Return a plain or encrypted password in plain; a reference unchanged."""
    return password if password.startswith(("env:", "file:")) else read_secret(password)


def with_start(config: SubtaskConfig, start: str, attempt: str) -> SubtaskConfig:
    """Return the settings with the stored start point and the attempt. `start` is JSON, or "" for none."""
    begins = {"start": MetaConfig.model_validate_json(start)} if start else {}
    return config.model_copy(update={**begins, "attempt": attempt})


def attempt_of(state: State, task: str) -> str:
    """Return `SubtaskConfig.attempt` of the task, drawn each time before the target's records are dropped."""
    return state.texts.get(attempt_name(task), "")


def attempt_name(task: str) -> str:
    """Return the name of the text that keeps a task's attempt, also while the task is stopped."""
    return f"attempt of {task}"


def order_of(
    state: State, bound: Bound, *, held: bool = False, validation: Mapping[tuple[str, str], str] | None = None
) -> SourceOrder:
    """Return all that the worker of that bound is to do. The reason why a file can't be read is sent too, and logged.

    `held`: running subtasks are to pause for a moment. `validation`: `SubtaskOrder.validation` by task and source.
    """
    row = state.sources[bound.source]
    form: dict[str, Any] = {}
    fault = ""
    try:
        form = sent_form(source_config(row))
    except ClusterError as error:
        fault = error.cause
        logger("master", source=row.name).error("source can't be read", sampled=True, **error.to_dict())
    found = []
    for subtask in state.of_source(bound.source):
        stage = Stage.PAUSED if held and subtask.stage is Stage.RUNNING else subtask.stage
        stage = stage if row.enabled else Stage.STOPPED
        told, why = ({}, "") if fault else _told(state, row, subtask)
        found.append(
            SubtaskOrder(
                task=subtask.task,
                stage=stage,
                revision=subtask.revision,
                config=told,
                kept=subtask.brief,
                unread=why,
                validation=(validation or {}).get((subtask.task, bound.source), ""),
            )
        )
    return SourceOrder(
        source=row.name,
        epoch=bound.epoch,
        cluster=state.cluster,
        config=form,
        relay_stage=row.relay_stage,
        subtasks=tuple(found),
        unread=fault,
    )


def _told(state: State, source: SourceRow, subtask: SubtaskRow) -> tuple[dict[str, Any], str]:
    """Return the config of a subtask, or why there is none."""
    task = state.tasks[subtask.task]
    try:
        attempt = attempt_of(state, task.name)
        form = _subtask_form(task.text, task.name, source.text, source.name, source.enabled, subtask.start, attempt)
        return form, ""
    except ConfigError as error:
        logger("master", source=source.name, task=task.name).error(
            "task can't be read", sampled=True, **error.to_dict()
        )
        return {}, _in_short(error)


def _read(parse: Callable[[str, str], Config], text: str, name: str) -> Config:
    """Parse a text. Raises ConfigError; an invalid text is not parsed anew at each beat."""
    fault = _fault(parse, text, name, int(time.monotonic() / _LOOKS_AGAIN_SECONDS))
    if fault is not None:
        raise ConfigError(fault.code, fault.where, fault.cause, fault.values)
    return parse(text, name)


@lru_cache(_KEPT)
def _fault(parse: Callable[[str, str], Section], text: str, name: str, spell: int) -> ConfigError | None:
    """Return the error of a text, None where it is valid; `spell` numbers the periods in which the answer holds."""
    del spell
    try:
        parse(text, name)
    except ConfigError as error:
        return error.with_traceback(None)
    return None


@lru_cache(_KEPT)
def _source(text: str, name: str) -> SourceConfig:
    return parse_source(text, name)


@lru_cache(_KEPT)
def _task(text: str, name: str) -> TaskConfig:
    return parse_task(text, name)


@lru_cache(_SENT)
def _subtask_form(
    task: str, name: str, source: str, source_name: str, enabled: bool, start: str, attempt: str
) -> dict[str, Any]:
    config = source_config(SourceRow(source_name, source, enabled))
    return sent_form(with_start(plan_subtask(_read(_task, task, name), config), start, attempt))


def sent_form(config: Section) -> dict[str, Any]:
    """Return the form that a worker is sent, without keys that have their default: an older version may lack them."""
    return config.model_dump(mode="json", by_alias=True, exclude_defaults=True)
