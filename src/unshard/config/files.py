"""Reads and checks task and source files: text → document → known keys → model → checks across sections.

Checks across sections find names that refer to nothing, rules that nobody uses, and clashing routes. They read the
plain data, so that they work even if a value elsewhere in the file is invalid.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from pydantic import ValidationError

from unshard.config.document import Document, parse_document, text_of
from unshard.config.keys import adopt
from unshard.config.patterns import covers, fold
from unshard.config.problems import KeyPath, Problem, from_validation, problem, refuse, suggestion
from unshard.config.rules import FilterRule
from unshard.config.section import Section
from unshard.config.source import SourceConfig
from unshard.config.task import TaskConfig
from unshard.errors import ConfigError, Where

if TYPE_CHECKING:
    from unshard.config.access import AccessFile
    from unshard.config.subtask import SubtaskConfig


NAME_LISTS = {
    "route-rules": "routes",
    "filter-rules": "filters",
    "expression-filters": "expression-filter",
    "column-mapping-rules": "column-mappings",
}
"""Keys of an instance that list names, and the section in which the names are looked up."""

NAMES = {
    "block-allow-list": "block-allow-list",
    "mydumper-config-name": "mydumpers",
    "loader-config-name": "loaders",
    "syncer-config-name": "syncers",
    "validator-config-name": "validators",
}
"""Keys of an instance that hold one name, and the section in which the name is looked up."""

EITHER = (("mydumper-config-name", "mydumper"), ("loader-config-name", "loader"), ("syncer-config-name", "syncer"))


def reference_problems(data: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield the problems of references in a task's data, whose keys are already those of the models."""
    instances = data.get("mysql-instances")
    instances = [instances] if isinstance(instances, dict) else instances  # refused elsewhere; its names count as used
    listed = [entry if isinstance(entry, dict) else {} for entry in instances] if isinstance(instances, list) else []
    used: set[tuple[str, str]] = set()
    for index, instance in enumerate(listed):
        for key, section, name, repeated in _names(instance):
            path = ("mysql-instances", index, key)
            known = data.get(section)
            known = known if isinstance(known, dict) else {}
            used.add((section, name))
            if name not in known:
                yield problem(path, f"`{name}` is not defined under {section}{suggestion(name, known)}")
            if repeated:
                yield problem(path, f"`{name}` is listed twice; keep one")
        for named, inline in EITHER:
            if instance.get(named) and inline in instance:
                yield problem(("mysql-instances", index, inline), f"set beside {named}; keep one of the two")
    yield from _unused(data, used)
    yield from _repeated_sources(listed)


def _names(instance: Mapping[str, Any]) -> Iterator[tuple[str, str, str, bool]]:
    """Yield (key, section, name, whether the key lists the name twice) for every name that an instance uses."""
    for key, section in NAME_LISTS.items():
        names = instance.get(key)
        names = [names] if isinstance(names, str) else names
        counted = Counter(name for name in names if isinstance(name, str)) if isinstance(names, list) else Counter()
        for name, times in counted.items():
            yield key, section, name, times > 1
    for key, section in NAMES.items():
        single = instance.get(key)
        if isinstance(single, str) and single:
            yield key, section, single, False


def _unused(data: Mapping[str, Any], used: set[tuple[str, str]]) -> Iterator[Problem]:
    for section in (*NAME_LISTS.values(), *NAMES.values()):
        rules = data.get(section)
        for name in rules if isinstance(rules, dict) else ():
            if (section, name) not in used:
                yield problem((section, name), "no instance uses it; name it in one of mysql-instances, or take it out")


def _repeated_sources(instances: list[dict[str, Any]]) -> Iterator[Problem]:
    first: dict[str, int] = {}
    for index, instance in enumerate(instances):
        source = instance.get("source-id")
        if isinstance(source, str) and first.setdefault(source, index) != index:
            path = ("mysql-instances", index, "source-id")
            yield problem(path, f"'{source}' is the source of entry [{first[source]}] already; name another")


def overlap_problems(task: TaskConfig) -> Iterator[Problem]:
    """Yield pairs of rules of one instance and level where one certainly matches every table that the other matches."""
    seen = set()
    for instance in task.mysql_instances:
        for section, names in (("routes", instance.route_rules), ("column-mappings", instance.column_mapping_rules)):
            rules = getattr(task, section.replace("-", "_"))
            for one, other in combinations(names, 2):
                pair = (section, frozenset({one, other}))
                if pair not in seen and _clash(rules[one], rules[other], task.case_sensitive):
                    seen.add(pair)
                    fault = f"whatever it matches, `{one}` matches too or the other way round; narrow one of the two"
                    yield problem((section, other), fault)


def filter_problems(task: TaskConfig) -> Iterator[Problem]:
    """Yield filters of one instance that have the patterns of an earlier one.

    DM uses only the first and ignores the rest.
    """
    seen = set()
    for instance in task.mysql_instances:
        rules = [(("filters", name), task.filters[name]) for name in instance.filter_rules]
        for found in _same_patterns(rules, task.case_sensitive):
            if found not in seen:
                seen.add(found)
                yield found


def source_problems(source: SourceConfig) -> Iterator[Problem]:
    """Yield the same problems as `filter_problems` for the filters of a source."""
    rules = [(("filters", place), rule) for place, rule in enumerate(source.filters)]
    return _same_patterns(rules, source.case_sensitive)


def _same_patterns(rules: Iterable[tuple[KeyPath, FilterRule]], case_sensitive: bool) -> Iterator[Problem]:
    first: dict[tuple[str, str], KeyPath] = {}
    for path, rule in rules:
        patterns = (fold(rule.schema_pattern, case_sensitive), fold(rule.table_pattern or "", case_sensitive))
        if first.setdefault(patterns, path) != path:
            fault = f"`{first[patterns][-1]}` has the same patterns; make one rule of the two"
            yield problem(path, fault)


def _clash(one: Any, other: Any, case_sensitive: bool) -> bool:
    if (one.table_pattern is None) != (other.table_pattern is None):
        return False

    def inside(wide: Any, narrow: Any) -> bool:
        pairs = [(wide.schema_pattern, narrow.schema_pattern)]
        if wide.table_pattern is not None:
            pairs.append((wide.table_pattern, narrow.table_pattern))
        return all(covers(a, b, case_sensitive=case_sensitive) for a, b in pairs)

    return inside(one, other) or inside(other, one)


def meta_problems(data: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield starting points that name no binlog position."""
    instances = data.get("mysql-instances")
    for index, instance in enumerate(instances if isinstance(instances, list) else ()):
        meta = instance.get("meta") if isinstance(instance, dict) else None
        if isinstance(meta, dict) and not meta.get("binlog-name") and not meta.get("binlog-gtid"):
            yield problem(("mysql-instances", index, "meta"), "names no place; write binlog-name, or binlog-gtid")


def shard_mode_problems(data: Mapping[str, Any]) -> Iterator[Problem]:
    """Yield keys that can't be combined with the task's `shard-mode`."""
    optimistic = data.get("shard-mode") == "optimistic"
    if optimistic and data.get("delivery") == "at-least-once":
        fault = "`shard-mode: optimistic` needs `delivery: exactly-once`: changes that are applied again could meet a"
        yield problem(("delivery",), f"{fault} target whose columns have changed since")
    if optimistic and data.get("is-sharding") is True:
        yield problem(("is-sharding",), "it stands for `shard-mode: pessimistic`, and `shard-mode` says optimistic")
    if data.get("strict-optimistic-shard-mode") is True and not optimistic:
        yield problem(("strict-optimistic-shard-mode",), "it goes with `shard-mode: optimistic` alone")


TASK_CHECKS: tuple[Callable[[Mapping[str, Any]], Iterator[Problem]], ...] = (
    reference_problems,
    meta_problems,
    shard_mode_problems,
)


_Model = TypeVar("_Model", bound=Section)
_Check = Callable[[Mapping[str, Any]], Iterable[Problem]]


def load_task(path: Path | str) -> TaskConfig:
    """Return the task that a file describes.

    Raises ConfigError: CONFIG-001 with all problems of the file, CONFIG-002 if it can't be read, CONFIG-003 if it isn't
    YAML. Reads nothing but the file; passwords stay references.
    """
    return parse_task(text_of(path), str(path))


def load_source(path: Path | str) -> SourceConfig:
    """Return the source that a file describes. Raises as `load_task` does."""
    return parse_source(text_of(path), str(path))


@dataclass(frozen=True, slots=True)
class TaskFiles:
    """A task and its sources, from their files. `texts` are the files' texts: the task's, then the sources'."""

    path: Path
    task: TaskConfig
    sources: tuple[SourceConfig, ...]
    subtasks: tuple[SubtaskConfig, ...]
    texts: tuple[str, ...]

    @property
    def notices(self) -> tuple[str, ...]:
        """Notices for the user about keys that have no effect; one sentence each."""
        return (*self.task.notices, *(notice for source in self.sources for notice in source.notices))


def load_files(task_path: Path, source_paths: Sequence[Path]) -> TaskFiles:
    """Load a task and its sources. Raises as `read_files` does, and CONFIG-005 if the files don't fit together."""
    task, sources, texts = read_files(task_path, source_paths)
    from unshard.config.subtask import plan_subtasks  # only here: reporting a mistake does not need it

    return TaskFiles(task_path, task, sources, plan_subtasks(task, sources), texts)


def read_files(
    task_path: Path, source_paths: Sequence[Path]
) -> tuple[TaskConfig, tuple[SourceConfig, ...], tuple[str, ...]]:
    """Return a task, its sources, and the texts of the files, the task's first.

    All files are read before an error is raised. Raises ConfigError as `load_task` does, and an ExceptionGroup of them
    if several files are wrong.
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
    """Return the callers that a file of tokens lists. Raises as `load_task` does."""
    from unshard.config.access import AccessFile

    return _parse(AccessFile, text_of(path), str(path), ())[0]


def load_process(model: type[_Model], path: Path | str, given: Mapping[str, Any]) -> _Model:
    """Return the settings of a process: its file, DM's TOML (`.toml`) or YAML, overridden by those of the command line.

    `path` is empty if there is no file. Raises as `load_task` does; settings of the command line are reported as line
    1.
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
    """Return the task that a text describes. `file` is its name in errors."""
    task, lines = _parse(TaskConfig, text, file, TASK_CHECKS)
    refuse(file, [*overlap_problems(task), *filter_problems(task)], lines)
    return task


def parse_source(text: str, file: str = "source") -> SourceConfig:
    """Return the source that a text describes. `file` is its name in errors."""
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
