"""DM's `table_migrate_rule` and `binlog_filter_rule`, and our routes, event filters and block-allow lists.

One rule of DM is up to three of ours: a route, filters with the same pattern, an entry of the list of tables to take.
A task that was written as a file may have rules that can't be said so; `are_sayable` tells.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

from pydantic import BaseModel, ConfigDict, Field

from unshard.config.rules import FilterRule
from unshard.config.task import InstanceConfig, TaskConfig


class _Object(BaseModel):
    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)


class EventRule(_Object):
    ignore_event: list[str] = []
    ignore_sql: list[str] = []


class RuleSource(_Object):
    source_name: str
    table: str = ""
    schema_name: str = Field(alias="schema")


class RuleTarget(_Object):
    table: str = ""
    schema_name: str = Field(alias="schema")


class MigrateRule(_Object):
    """Tables of a source (patterns), and where they go; without a target they keep their names."""

    source: RuleSource
    target: RuleTarget | None = None
    binlog_filter_rule: list[str] = []


SECTIONS = ("routes", "filters", "block-allow-list", "expression-filter", "column-mappings")
USES = ("route-rules", "filter-rules", "block-allow-list", "expression-filters", "column-mapping-rules")
"""The keys of a task file, and of each of its instances, that say which rows go where."""


def to_sections(
    rules: Sequence[MigrateRule], events: Mapping[str, EventRule], instances: dict[str, dict[str, Any]]
) -> dict[str, Any]:
    """The sections of a task file, named by number as DM names them; `instances`, by source, get what they use."""
    routes: dict[str, Any] = {}
    filters: dict[str, Any] = {}
    allowed: dict[str, Any] = {}
    for number, rule in enumerate(rules):
        source = rule.source
        # a source that the task doesn't list gets an entry that the reader of the file refuses by name
        instance = instances.setdefault(source.source_name, {"source-id": source.source_name})
        pattern = {"schema-pattern": source.schema_name} | ({"table-pattern": source.table} if source.table else {})
        if rule.target is not None:
            table = {"target-table": rule.target.table} if rule.target.table else {}
            name = f"{source.source_name}-route_rule-{number}"
            routes[name] = pattern | {"target-schema": rule.target.schema_name} | table
            instance.setdefault("route-rules", []).append(name)
        for named in rule.binlog_filter_rule:
            one = events.get(named, EventRule())
            name = f"{source.source_name}-filter_rule-{named}-{number}"
            found = {"events": one.ignore_event, "sql-pattern": one.ignore_sql}
            filters[name] = pattern | {key: value for key, value in found.items() if value} | {"action": "Ignore"}
            instance.setdefault("filter-rules", []).append(name)
        taken = allowed.setdefault(source.source_name, {"do-tables": []})
        entry = {"db-name": source.schema_name, "tbl-name": source.table or "*"}
        if entry not in taken["do-tables"]:
            taken["do-tables"].append(entry)
        instance["block-allow-list"] = source.source_name
    sections: dict[str, Any] = {"routes": routes, "filters": filters, "block-allow-list": allowed}
    return {key: value for key, value in sections.items() if value}


def shown_rules(task: TaskConfig) -> list[dict[str, Any]]:
    """A rule for each route, and for each entry of a list of tables to take that no route is for."""
    return [rule for one in task.mysql_instances for rule in _of_instance(task, one)]


def shown_events(task: TaskConfig) -> dict[str, dict[str, Any]]:
    """The event filters that leave something out, by the name that rules refer to them by."""
    return {
        _named(one, name): {"ignore_event": list(rule.events), "ignore_sql": list(rule.sql_pattern)}
        for one in task.mysql_instances
        for name in one.filter_rules
        if (rule := task.filters[name]).action == "Ignore"
    }


def meaning(task: TaskConfig) -> list[list[Any]]:
    """What the rules of a task say for each source, whatever they are called."""
    found = []
    for one in task.mysql_instances:
        allowed = task.block_allow_list.get(one.block_allow_list)
        routes = [task.routes[name] for name in one.route_rules]
        filters = [task.filters[name] for name in one.filter_rules]
        rows = [task.expression_filter[name] for name in one.expression_filters]
        found.append([one.source_id, allowed, routes, filters, rows, one.column_mapping_rules])
    return found


def _of_instance(task: TaskConfig, instance: InstanceConfig) -> list[dict[str, Any]]:
    found = []
    for name in instance.route_rules:
        route = task.routes[name]
        target = {"schema": route.target_schema, "table": route.target_table or ""}
        found.append(_rule(task, instance, route.schema_pattern, route.table_pattern or "", target))
    allowed = task.block_allow_list.get(instance.block_allow_list)
    routed = {(rule["source"]["schema"], rule["source"]["table"] or "*") for rule in found}
    for entry in allowed.do_tables if allowed is not None else ():
        if (entry.db_name, entry.tbl_name) not in routed:
            found.append(_rule(task, instance, entry.db_name, entry.tbl_name, None))
    return found


def _rule(
    task: TaskConfig, instance: InstanceConfig, schema: str, table: str, target: dict[str, str] | None
) -> dict[str, Any]:
    def fits(rule: FilterRule) -> bool:
        return rule.action == "Ignore" and (rule.schema_pattern, rule.table_pattern or "*") == (schema, table or "*")

    return {
        "source": {"source_name": instance.source_id, "schema": schema, "table": table},
        "target": target,
        "binlog_filter_rule": [_named(instance, name) for name in instance.filter_rules if fits(task.filters[name])],
    }


def _named(instance: InstanceConfig, name: str) -> str:
    """The name that DM's object had for the filter, where it was made of one."""
    found = re.fullmatch(rf"{re.escape(instance.source_id)}-filter_rule-(.+)-\d+", name)
    return found[1] if found is not None else name
