"""Checks of a task's rules by the tables that there are: rules that match none, and tables that two sources take.

A rule that matches no table mostly has a misspelt pattern, which nobody would notice before the end. Where sources are
one server under two source-ids, the tables that both take would be written twice.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches
from enum import Enum
from itertools import combinations

from unshard.checks.facts import SourceFacts, TaskFacts
from unshard.checks.result import Finding
from unshard.config.rules import BlockAllowRule
from unshard.config.subtask import SubtaskConfig
from unshard.config.table_rules import parse_rule
from unshard.errors import some_of
from unshard.model.table import TableName
from unshard.transform.pattern import Pattern
from unshard.transform.route import Router
from unshard.transform.source_rules import TableFilter, TableSelection, allow_list, taken


class _Form(Enum):
    """The form of a rule's names: DM's patterns, those of a list, where `*` may stand anywhere, or exact names.

    A rule of `--filter` is one text, which stands as its `schema`.
    """

    PATTERN = "pattern"
    LIST = "list"
    EXACT = "exact"
    FILTER = "filter"


@dataclass(frozen=True, slots=True)
class _Rule:
    """A pattern of a rule, for schemas or for schemas and tables, and its place in the task file."""

    place: str
    schema: str
    table: str | None
    form: _Form

    def __str__(self) -> str:
        return f"{self.place}: {self.schema}" if self.table is None else f"{self.place}: {self.schema}.{self.table}"


def unmatched(task: TaskFacts) -> Iterator[Finding]:
    """Report rules that match no table, sources of which no table is taken, and a task that would migrate nothing.

    Runs only before the first start, because tables may be dropped later.
    """
    fresh = [source for source in task.sources if source.fresh]
    if not fresh or task.others or len(fresh) < len(task.sources):
        return
    if not any(source.targets for source in fresh) and any(source.existing for source in fresh):
        there = _some(name for source in fresh for name in source.existing)
        yield Finding(
            "warn" if any(source.follows for source in fresh) else "fail",  # its tables may be created later
            f"the task takes no table at all: `block-allow-list` leaves out every table that there is ({there})",
            "correct the names under `block-allow-list`; `unshard explain` shows which rule decides about a table",
        )
    else:
        for source in fresh:
            if not source.targets:
                why = "leaves out every table of it" if source.existing else "has nothing to take: it has no tables"
                subject = "`block-allow-list`" if source.existing else "the task"
                yield Finding(
                    "warn",
                    f"no table of source {source.name} is taken: {subject} {why}",
                    "correct the names under `block-allow-list`, or go on: tables that it lets through later are taken",
                )
    for rule, among in _rules(fresh).items():
        existing = {name for source in among for name in source.existing}
        if existing and not _matches(rule, existing, among[0].config):
            near = _nearest(rule, existing)
            hint = f"; the nearest name is {near}" if near else ""
            exact = rule.form is _Form.EXACT
            yield Finding(
                "fail" if exact else "warn",  # dumpling stops too
                f"{rule} matches no table of {', '.join(source.name for source in among)}{hint}",
                "correct the name, in which upper and lower case count, or take it out of `extra-args`"
                if exact
                else "correct the pattern, take the rule out, or go on where its tables are made later",
            )
    for source in fresh:
        yield from _not_copied(source)


def _not_copied(source: SourceFacts) -> Iterator[Finding]:
    """Report the tables that are followed while flags of the dump leave them out of the copy."""
    flags = source.config.dumper
    if source.config.mode != "all" or not (flags.databases or flags.tables or flags.filters):
        return
    copied, followed = TableSelection.of(source.config).takes(), allow_list(source.config).allows
    if left := [name for name in source.existing if followed(name) and not copied(name)]:
        yield Finding(
            "warn",
            f"{source.name} follows tables without a copy, because `extra-args` chooses others for the dump: "
            f"{_some(left)}; the rows that they have today stay out of the target",
            "choose tables with `block-allow-list`, which counts for dump, load and sync; or go on where the target "
            "has these rows already",
        )


def _rules(sources: Iterable[SourceFacts]) -> dict[_Rule, list[SourceFacts]]:
    """Return the rules that name tables to take, each with its sources."""
    found: dict[_Rule, list[SourceFacts]] = {}
    for source in sources:
        for rule in _of_source(source.config):
            found.setdefault(rule, []).append(source)
    return found


def _of_source(config: SubtaskConfig) -> Iterator[_Rule]:
    allow = config.block_allow or BlockAllowRule()
    for text in allow.do_dbs:
        yield _Rule("do-dbs", text, None, _Form.LIST)
    for entry in allow.do_tables:
        yield _Rule("do-tables", entry.db_name, entry.tbl_name, _Form.LIST)
    for name, route in config.routes.items():
        yield _Rule(f"route {name}", route.schema_pattern, route.table_pattern, _Form.PATTERN)
    for name, mapping in config.column_mappings.items():
        yield _Rule(f"column mapping {name}", mapping.schema_pattern, mapping.table_pattern, _Form.PATTERN)
    for schema in config.dumper.databases:
        yield _Rule("-B of extra-args", schema, None, _Form.EXACT)
    for schema, table in config.dumper.tables:
        yield _Rule("-T of extra-args", schema, table, _Form.EXACT)
    for text in config.dumper.filters:
        if parse_rule(text).taken:
            yield _Rule("--filter of extra-args", text, None, _Form.FILTER)


def _matches(rule: _Rule, existing: Iterable[TableName], config: SubtaskConfig) -> bool:
    """Return whether the rule matches any of these tables."""
    if rule.form is _Form.EXACT:
        return any(rule.schema == name.schema and rule.table in (None, name.table) for name in existing)
    if rule.form is _Form.FILTER:
        return any(map(TableFilter([rule.schema], config.case_sensitive).takes, existing))

    def compiled(text: str) -> Pattern:
        anywhere = rule.form is _Form.LIST
        return Pattern.compile(text, case_sensitive=config.case_sensitive, star_anywhere=anywhere)

    schema, table = compiled(rule.schema), compiled(rule.table) if rule.table is not None else None
    return any(schema.matches(name.schema) and (table is None or table.matches(name.table)) for name in existing)


def _nearest(rule: _Rule, existing: Iterable[TableName]) -> str:
    """Return the existing name that resembles the pattern most; "" if none does."""
    if rule.table is None and rule.form is not _Form.FILTER:
        names = {name.schema for name in existing}
        wanted = rule.schema
    else:
        names = {str(name) for name in existing}
        wanted = rule.schema if rule.table is None else f"{rule.schema}.{rule.table}"
    found = get_close_matches(wanted, sorted(names), 1)
    return found[0] if found else ""


def _some(names: Iterable[TableName]) -> str:
    return some_of(sorted(map(str, names)))


_LATER = "unshard_made_later"
"""A name that stands for schemas and tables that are created later."""
_SHOWN = 3


def doubled(task: TaskFacts) -> Iterator[Finding]:
    """Report each pair of sources that are one server and send one of its tables to the same target table.

    Tables that may be created later count too. A table that the two sources send to different target tables is written
    once to each, and is not reported.
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
    """Return the tables that both sources send to one target table.

    They are the existing ones, and a made-up one for each name in a list.
    """
    tables = {*first.targets, *second.targets}
    later = {*_named(first.config), *_named(second.config)} - tables
    one, other = _lands(first), _lands(second)
    every = (*sorted(tables), *sorted(later))
    return [table for table in every if (target := one(table)) is not None and target == other(table)]


def _named(config: SubtaskConfig) -> Iterator[TableName]:
    """Yield a table that may be created later for each name in the list of tables to take.

    An expression (`~…`) yields none.
    """
    rule = config.block_allow or BlockAllowRule()
    yield TableName(_LATER, _LATER)
    for schema in rule.do_dbs:
        yield TableName(_fitting(schema), _LATER)
    for entry in rule.do_tables:
        yield TableName(_fitting(entry.db_name), _fitting(entry.tbl_name))


def _fitting(pattern: str) -> str:
    return pattern.replace("*", "").replace("?", "x") or _LATER


def _lands(source: SourceFacts) -> Callable[[TableName], TableName | None]:
    """Return a function that gives the target table of a source table, or None if the source does not take it."""
    takes, router = taken(source.config), Router(source.config.routes, source.config.case_sensitive)
    return lambda table: router.route(table) if takes(table) else None


def _place(source: SourceFacts) -> str:
    return f"{source.end.endpoint.host}:{source.end.endpoint.port}"
