"""Task and source files read and checked: text → document → known keys → model → checks across sections."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import ValidationError

from unshard.config.document import Document, parse_document, text_of
from unshard.config.keys import adopt
from unshard.config.problems import Problem, from_validation, refuse
from unshard.config.references import TASK_CHECKS, filter_problems, overlap_problems, source_problems
from unshard.config.section import Section
from unshard.config.source import SourceConfig
from unshard.config.task import TaskConfig
from unshard.errors import ConfigError, Where

if TYPE_CHECKING:
    from unshard.config.access import AccessFile
    from unshard.config.subtask import SubtaskConfig

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


@dataclass(frozen=True, slots=True)
class TaskFiles:
    """A task and its sources as their files say. `texts` are the files' own: the task's, then the sources'."""

    path: Path
    task: TaskConfig
    sources: tuple[SourceConfig, ...]
    subtasks: tuple[SubtaskConfig, ...]
    texts: tuple[str, ...]

    @property
    def notices(self) -> tuple[str, ...]:
        """What the user should be told of keys that are read and do nothing; one sentence each."""
        return (*self.task.notices, *(notice for source in self.sources for notice in source.notices))


def load_files(task_path: Path, source_paths: Sequence[Path]) -> TaskFiles:
    """A task and its sources. Raises as `read_files` does, and CONFIG-005 where the files don't fit together."""
    task, sources, texts = read_files(task_path, source_paths)
    from unshard.config.subtask import plan_subtasks  # not before: a mistake is told without it

    return TaskFiles(task_path, task, sources, plan_subtasks(task, sources), texts)


def read_files(
    task_path: Path, source_paths: Sequence[Path]
) -> tuple[TaskConfig, tuple[SourceConfig, ...], tuple[str, ...]]:
    """A task, its sources, and the texts of the files, the task's first. All are read before one is refused.

    Raises ConfigError as `load_task` does, and an ExceptionGroup of them where several files are wrong.
    """
    errors: list[Exception] = []
    texts: list[str] = []

    def parsed(parse: Callable[[str, str], _Model], path: Path) -> list[_Model]:
        try:
            texts.append(text_of(path))
            return [parse(texts[-1], str(path))]
        except ConfigError as error:
            errors.append(error)
            return []

    tasks = parsed(parse_task, task_path)
    sources = [source for path in source_paths for source in parsed(parse_source, path)]
    if len(errors) == 1:
        raise errors[0]
    if errors:
        raise ExceptionGroup("files that are refused", errors)
    return tasks[0], tuple(sources), tuple(texts)


def load_access(path: Path | str) -> AccessFile:
    """The callers that a file of tokens lists. Raises as `load_task` does."""
    from unshard.config.access import AccessFile

    return _parse(AccessFile, text_of(path), str(path), ())[0]


def load_process(model: type[_Model], path: Path | str, given: Mapping[str, Any]) -> _Model:
    """The settings of a process: its file, DM's TOML (`.toml`) or YAML, with what the command line gives over it.

    No file: `path` is empty. Raises as `load_task` does; what the command line gives counts as line 1.
    """
    document = Document()
    if str(path).endswith(".toml"):
        import tomllib

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
