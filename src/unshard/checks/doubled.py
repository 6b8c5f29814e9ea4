"""The check of sources that are one server under two source-ids: what both of them take would be written twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import combinations

from unshard.checks.facts import SourceFacts, TaskFacts
from unshard.checks.result import Finding
from unshard.config.rules import BlockAllowRule
from unshard.config.subtask import SubtaskConfig
from unshard.model.table import TableName
from unshard.transform.route import Router
from unshard.transform.taken import taken

_LATER = "unshard_made_later"
"""A name that stands for schemas and tables that are made later on."""
_SHOWN = 3


def doubled(task: TaskFacts) -> Iterator[Finding]:
    """Each two sources that are one server and both send a table of it, be it one of later on, to one target table.

    A table that each of them sends to a table of its own is written once there.
    """
    sources = {source.name: source for source in (*task.sources, *task.others)}
    for group in task.one_server:
        for first, second in combinations((sources[name] for name in group), 2):
            if first in task.others and second in task.others:
                continue
            tables = _both_take(first, second)
            there = [table for table in tables if table in first.targets]
            if not tables:
                continue
            more = f" and {len(there) - _SHOWN} more" if len(there) > _SHOWN else ""
            which = f"{', '.join(map(str, there[:_SHOWN]))}{more}" if there else "any table that is made later"
            yield Finding(
                "fail",
                f"{first.name} and {second.name} are one and the same server, and both take {which}: "
                "its rows would be written twice",
                f"correct `from:` of {first.name} or {second.name}; or leave one of them out of mysql-instances; or "
                "give them block-allow-lists that share no table",
                f"{first.name} {_place(first)}",
                f"{second.name} {_place(second)}",
            )


def _both_take(first: SourceFacts, second: SourceFacts) -> list[TableName]:
    """Those that there are, and of those that may come one for each name that a list has."""
    tables = {*first.targets, *second.targets}
    later = {*_named(first.config), *_named(second.config)} - tables
    one, other = _lands(first), _lands(second)
    every = (*sorted(tables), *sorted(later))
    return [table for table in every if (target := one(table)) is not None and target == other(table)]


def _named(config: SubtaskConfig) -> Iterator[TableName]:
    """A table that is not there yet for each name in the list of those to take; an expression (`~…`) gives none."""
    rule = config.block_allow or BlockAllowRule()
    yield TableName(_LATER, _LATER)
    for schema in rule.do_dbs:
        yield TableName(_fitting(schema), _LATER)
    for entry in rule.do_tables:
        yield TableName(_fitting(entry.db_name), _fitting(entry.tbl_name))


def _fitting(pattern: str) -> str:
    return pattern.replace("*", "").replace("?", "x") or _LATER


def _lands(source: SourceFacts) -> Callable[[TableName], TableName | None]:
    """Where a table of the source lands; None for one that it does not take."""
    takes, router = taken(source.config), Router(source.config.routes, source.config.case_sensitive)
    return lambda table: router.route(table) if takes(table) else None


def _place(source: SourceFacts) -> str:
    return f"{source.end.endpoint.host}:{source.end.endpoint.port}"
