"""Task and source files read and checked: text → document → known keys → model → checks across sections."""

from __future__ import annotations

import tomllib
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, TypeVar

from pydantic import ValidationError

from unshard.config.access import AccessFile
from unshard.config.document import Document, parse_document, text_of
from unshard.config.keys import adopt
from unshard.config.problems import Problem, from_validation, refuse
from unshard.config.references import TASK_CHECKS, filter_problems, overlap_problems, source_problems
from unshard.config.section import Section
from unshard.config.source import SourceConfig
from unshard.config.task import TaskConfig
from unshard.errors import ConfigError, Where

_Model = TypeVar("_Model", bound=Section)
_Check = Callable[[Mapping[str, Any]], Iterable[Problem]]


def load_task(path: Path | str) -> TaskConfig:
    """The task that a file describes.

    Raises ConfigError: CONFIG-001 with all problems of the file, CONFIG-002 when it can't be read, CONFIG-003 when
    it isn't YAML. Reads nothing but the file; passwords stay references.
    """
    return parse_task(text_of(path), str(path))


def load_source(path: Path | str) -> SourceConfig:
    """The source that a file describes. Raises as `load_task` does."""
    return parse_source(text_of(path), str(path))


def load_access(path: Path | str) -> AccessFile:
    """The callers that a file of tokens lists. Raises as `load_task` does."""
    return _parse(AccessFile, text_of(path), str(path), ())[0]


def load_process(model: type[_Model], path: Path | str, given: Mapping[str, Any]) -> _Model:
    """The settings of a process: its file, DM's TOML (`.toml`) or YAML, with what the command line gives over it.

    No file: `path` is empty. Raises as `load_task` does; what the command line gives counts as line 1.
    """
    document = Document()
    if str(path).endswith(".toml"):
        try:
            document.data = tomllib.loads(text_of(path))
        except tomllib.TOMLDecodeError as error:
            raise ConfigError("CONFIG-003", Where(file=str(path)), str(error)) from None
    elif path:
        document = parse_document(text_of(path), str(path))
    document.data.update(given)
    return _checked(model, document, str(path) or "command line", ())[0]


def parse_task(text: str, file: str = "task") -> TaskConfig:
    """The task that a text describes; `file` is its name in errors."""
    task, lines = _parse(TaskConfig, text, file, TASK_CHECKS)
    refuse(file, [*overlap_problems(task), *filter_problems(task)], lines)
    return task


def parse_source(text: str, file: str = "source") -> SourceConfig:
    """The source that a text describes; `file` is its name in errors."""
    source, lines = _parse(SourceConfig, text, file, ())
    refuse(file, source_problems(source), lines)
    return source


def _parse(
    model: type[_Model], text: str, file: str, checks: tuple[_Check, ...]
) -> tuple[_Model, Mapping[tuple[str | int, ...], int]]:
    return _checked(model, parse_document(text, file), file, checks)


def _checked(
    model: type[_Model], document: Document, file: str, checks: tuple[_Check, ...]
) -> tuple[_Model, Mapping[tuple[str | int, ...], int]]:
    data = adopt(model, document.data, (), document)
    problems = document.problems
    for check in checks:
        problems.extend(check(data))
    try:
        checked = model.model_validate(data)
    except ValidationError as error:
        refuse(file, problems + [from_validation(detail) for detail in error.errors()], document.lines)
        raise  # never reached: there is at least one problem
    refuse(file, problems, document.lines)
    return checked, document.lines
