"""The check of a task whose rules take nothing: mostly a misspelt pattern, which nobody would notice before the end."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from difflib import get_close_matches

from unshard.checks.facts import SourceFacts, TaskFacts
from unshard.checks.result import Finding
from unshard.config.rules import BlockAllowRule
from unshard.config.subtask import SubtaskConfig
from unshard.model.table import TableName
from unshard.transform.pattern import Pattern


@dataclass(frozen=True, slots=True)
class _Rule:
    """A pattern of schemas, or of tables too, and where it stands in the task file."""

    place: str
    schema: str
    table: str | None
    star_anywhere: bool

    def __str__(self) -> str:
        return f"{self.place}: {self.schema}" if self.table is None else f"{self.place}: {self.schema}.{self.table}"


def unmatched(task: TaskFacts) -> Iterator[Finding]:
    """Rules for tables that no source has, sources of which no table is taken, and a task that would migrate nothing.

    Looked at before the first start alone: tables may be dropped later.
    """
    fresh = [source for source in task.sources if source.fresh]
    if not fresh or task.others or len(fresh) < len(task.sources):
        return
    if not any(source.targets for source in fresh) and any(source.existing for source in fresh):
        there = _some(name for source in fresh for name in source.existing)
        yield Finding(
            "warn" if any(source.follows for source in fresh) else "fail",  # what is followed may be made later
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
            yield Finding(
                "warn",
                f"{rule} matches no table of {', '.join(source.name for source in among)}{hint}",
                "correct the pattern, take the rule out, or go on where its tables are made later",
            )


def _rules(sources: Iterable[SourceFacts]) -> dict[_Rule, list[SourceFacts]]:
    """The rules that name tables to take, with the sources that each is for."""
    found: dict[_Rule, list[SourceFacts]] = {}
    for source in sources:
        for rule in _of_source(source.config):
            found.setdefault(rule, []).append(source)
    return found


def _of_source(config: SubtaskConfig) -> Iterator[_Rule]:
    allow = config.block_allow or BlockAllowRule()
    for text in allow.do_dbs:
        yield _Rule("do-dbs", text, None, True)
    for entry in allow.do_tables:
        yield _Rule("do-tables", entry.db_name, entry.tbl_name, True)
    for name, route in config.routes.items():
        yield _Rule(f"route {name}", route.schema_pattern, route.table_pattern, False)
    for name, mapping in config.column_mappings.items():
        yield _Rule(f"column mapping {name}", mapping.schema_pattern, mapping.table_pattern, False)


def _matches(rule: _Rule, existing: Iterable[TableName], config: SubtaskConfig) -> bool:
    """Whether the rule is for any of these tables."""

    def compiled(text: str) -> Pattern:
        return Pattern.compile(text, case_sensitive=config.case_sensitive, star_anywhere=rule.star_anywhere)

    schema, table = compiled(rule.schema), compiled(rule.table) if rule.table is not None else None
    return any(schema.matches(name.schema) and (table is None or table.matches(name.table)) for name in existing)


def _nearest(rule: _Rule, existing: Iterable[TableName]) -> str:
    """The name there that looks most like the pattern; "" where none does."""
    if rule.table is None:
        names = {name.schema for name in existing}
        wanted = rule.schema
    else:
        names = {str(name) for name in existing}
        wanted = f"{rule.schema}.{rule.table}"
    found = get_close_matches(wanted, sorted(names), 1)
    return found[0] if found else ""


def _some(names: Iterable[TableName], most: int = 3) -> str:
    listed = sorted(map(str, names))
    more = f" and {len(listed) - most} more" if len(listed) > most else ""
    return ", ".join(listed[:most]) + more
