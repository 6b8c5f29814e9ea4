"""Checks of a task across its sections: names that point nowhere, rules that nobody uses, clashing routes.

They read the plain data, so that they speak also when some value elsewhere in the file is wrong.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import combinations
from typing import Any

from unshard.config.pattern_syntax import covers, fold
from unshard.config.problems import KeyPath, Problem, problem, suggestion
from unshard.config.rules import FilterRule
from unshard.config.source import SourceConfig
from unshard.config.task import TaskConfig

NAME_LISTS = {
    "route-rules": "routes",
    "filter-rules": "filters",
    "expression-filters": "expression-filter",
    "column-mapping-rules": "column-mappings",
}
"""Key of an instance that lists names, and the section that they are looked up in."""

NAMES = {
    "block-allow-list": "block-allow-list",
    "mydumper-config-name": "mydumpers",
    "loader-config-name": "loaders",
    "syncer-config-name": "syncers",
    "validator-config-name": "validators",
}
"""Key of an instance that holds one name, and the section that it is looked up in."""

EITHER = (("mydumper-config-name", "mydumper"), ("loader-config-name", "loader"), ("syncer-config-name", "syncer"))


def reference_problems(data: Mapping[str, Any]) -> Iterator[Problem]:
    """All such problems of a task's data, whose keys are already those of the models."""
    instances = data.get("mysql-instances")
    instances = [instances] if isinstance(instances, dict) else instances  # refused elsewhere; what it names is used
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
    """(key, section, name, whether the key lists the name twice) of every name that an instance uses."""
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
    """Pairs of rules of one instance and level where every table of the one is surely one of the other too."""
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
    """Filters of one instance with the patterns of one before them: DM takes the first alone, and drops the rest."""
    seen = set()
    for instance in task.mysql_instances:
        rules = [(("filters", name), task.filters[name]) for name in instance.filter_rules]
        for found in _same_patterns(rules, task.case_sensitive):
            if found not in seen:
                seen.add(found)
                yield found


def source_problems(source: SourceConfig) -> Iterator[Problem]:
    """The same for the filters of a source."""
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
    """Starting points that name no place."""
    instances = data.get("mysql-instances")
    for index, instance in enumerate(instances if isinstance(instances, list) else ()):
        meta = instance.get("meta") if isinstance(instance, dict) else None
        if isinstance(meta, dict) and not meta.get("binlog-name") and not meta.get("binlog-gtid"):
            yield problem(("mysql-instances", index, "meta"), "names no place; write binlog-name, or binlog-gtid")


TASK_CHECKS: tuple[Callable[[Mapping[str, Any]], Iterator[Problem]], ...] = (reference_problems, meta_problems)
