"""Converts between DM's task object and our task file.

One rule of DM (`table_migrate_rule`, `binlog_filter_rule`) becomes up to three of ours: a route, filters with the same
pattern, an entry of the list of tables to take. The object can hold less than the file: it has no place for extracted
columns, expression filters, column mappings and the like. A task that uses them is shown without them, and a change by
an object leaves them as they are. A change of the rules is then refused (`to_text`): it has to be made by the file
(`unshard ctl update-task`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, Field

from unshard.config.rules import FilterRule
from unshard.config.secret import HIDDEN
from unshard.config.task import InstanceConfig, TaskConfig
from unshard.errors import ClusterError
from unshard.master.passwords import check_kept_password
from unshard.web.rest.source_form import Security, security_section


class _Object(BaseModel):
    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)


class EventRule(_Object):
    """An event filter: events and statements to exclude."""

    ignore_event: list[str] = []
    ignore_sql: list[str] = []


class RuleSource(_Object):
    """The source tables of a rule, by patterns."""

    source_name: str
    table: str = ""
    schema_name: str = Field(alias="schema")


class RuleTarget(_Object):
    """The target of a rule; with an empty table name the tables keep their own names."""

    table: str = ""
    schema_name: str = Field(alias="schema")


class MigrateRule(_Object):
    """A rule that selects tables of a source by patterns and routes them; without a target they keep their names."""

    source: RuleSource
    target: RuleTarget | None = None
    binlog_filter_rule: list[str] = []


SECTIONS = ("routes", "filters", "block-allow-list", "expression-filter", "column-mappings")
USES = ("route-rules", "filter-rules", "block-allow-list", "expression-filters", "column-mapping-rules")
"""The keys of a task file, and of each of its instances, that say which rows go where."""


def to_sections(
    rules: Sequence[MigrateRule], events: Mapping[str, EventRule], instances: dict[str, dict[str, Any]]
) -> dict[str, Any]:
    """Return the sections of a task file, named by number as DM names them.

    `instances`, by source, get the names of the sections that they use.
    """
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
    """Return a rule for each route, and for each entry of an allow list that has no route."""
    return [rule for one in task.mysql_instances for rule in _of_instance(task, one)]


def shown_events(task: TaskConfig) -> dict[str, dict[str, Any]]:
    """Return the event filters that exclude something, by the names in the rules that use them."""
    return {
        _named(one, name): {"ignore_event": list(rule.events), "ignore_sql": list(rule.sql_pattern)}
        for one in task.mysql_instances
        for name in one.filter_rules
        if (rule := task.filters[name]).action == "Ignore"
    }


def meaning(task: TaskConfig) -> list[list[Any]]:
    """Return the rules of a task for each source, whatever their names are."""
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
    """Return the name that DM's object had for the filter, if one was its origin."""
    found = re.fullmatch(rf"{re.escape(instance.source_id)}-filter_rule-(.+)-\d+", name)
    return found[1] if found is not None else name


class Target(_Object):
    """The target: its address, login and session variables."""

    host: str
    port: int
    user: str
    password: str = Field(default="", repr=False)
    security: Security | None = None
    session: dict[str, str] = {}


class FullConf(_Object):
    """Settings of dump and load."""

    export_threads: int | None = None
    import_threads: int | None = None
    data_dir: str | None = None
    consistency: str | None = None


class IncrConf(_Object):
    """Settings of the sync."""

    repl_threads: int | None = None
    repl_batch: int | None = None
    safe_mode: bool | None = None


class SourceConf(_Object):
    """A source of the task, and the position where an incremental task begins on it."""

    source_name: str
    binlog_name: str | None = None
    binlog_pos: int | None = None
    binlog_gtid: str | None = None


class SourceSettings(_Object):
    """The settings of the units, and the sources of the task."""

    full_migrate_conf: FullConf | None = None
    incr_migrate_conf: IncrConf | None = None
    source_conf: list[SourceConf] = Field(min_length=1)


class Task(_Object):
    """A migration task. In a change, settings that are left out stay as they are."""

    name: str
    task_mode: str
    shard_mode: str = ""
    meta_schema: str | None = None
    enhance_online_schema_change: bool = True
    on_duplicate: str = ""
    ignore_checking_items: list[str] = []
    target_config: Target
    binlog_filter_rule: dict[str, EventRule] = {}
    table_migrate_rule: list[MigrateRule] = []
    source_config: SourceSettings


def to_text(task: Task, known: TaskConfig | None = None) -> str:
    """Return the task file.

    Values that the object can't have, or omits, stay as in `known`: a password (also one shown as `******`),
    certificates, settings of units, rules where the object's are those of `known`. Raises ClusterError CLUSTER-016 for
    other rules than those of `known` where these don't all fit into an object: they would be lost; and where the
    password would stay for another host, port or user.
    """
    form = known.model_dump(mode="json", by_alias=True, exclude_unset=True) if known is not None else {}
    target = task.target_config
    login: dict[str, Any] = {"host": target.host, "port": target.port, "user": target.user}
    if known is None or target.password not in ("", HIDDEN):
        login["password"] = target.password
    else:
        check_kept_password("target-database", known.target_database, target.host, target.port, target.user)
    session = {"session": target.session} if target.session else {}
    optional = {
        "shard-mode": task.shard_mode,
        "meta-schema": task.meta_schema,
        "ignore-checking-items": task.ignore_checking_items,
    }
    form |= {"name": task.name, "task-mode": task.task_mode}
    form |= {key: value for key, value in optional.items() if value}
    if known is None or "enhance_online_schema_change" in task.model_fields_set:
        form["online-ddl"] = task.enhance_online_schema_change
    form["target-database"] = form.get("target-database", {}) | login | session | security_section(target.security)
    before = {one["source-id"]: one for one in form.get("mysql-instances", ())}
    instances = [_instance(conf, before.get(conf.source_name, {})) for conf in task.source_config.source_conf]
    form["mysql-instances"] = instances
    _add_units(task, form, instances)
    if known is not None:
        shown = _rules_of(known)
        task = task.model_copy(update={key: shown[key] for key in shown.keys() - task.model_fields_set})
    if known is None or not _has_rules_of(task, known):
        _replace_rules(task, form, instances, known)
    return yaml.safe_dump(form, sort_keys=False, allow_unicode=True)


def _instance(conf: SourceConf, before: dict[str, Any]) -> dict[str, Any]:
    meta = conf.model_dump(exclude_none=True, exclude={"source_name"})
    start = {"meta": {key.replace("_", "-"): value for key, value in meta.items()}} if meta else {}
    return {**before, "source-id": conf.source_name, **start}


def _add_units(task: Task, form: dict[str, Any], instances: list[dict[str, Any]]) -> None:
    full, incr = task.source_config.full_migrate_conf, task.source_config.incr_migrate_conf
    units: dict[str, dict[str, Any]] = {"mydumper": {}, "loader": {}, "syncer": {}}
    if full is not None:
        extra = f"--consistency {full.consistency}" if full.consistency else None
        units["mydumper"] = {"threads": full.export_threads, "extra-args": extra}
        units["loader"] = {"pool-size": full.import_threads, "dir": full.data_dir}
    if task.on_duplicate:
        units["loader"]["on-duplicate-logical"] = task.on_duplicate
    if incr is not None:
        units["syncer"] = {
            "worker-count": incr.repl_threads, "batch": incr.repl_batch, "safe-mode": incr.safe_mode
        }  # fmt: skip
    for unit, given in units.items():
        values = {key: value for key, value in given.items() if value is not None}
        for instance in instances if values else ():
            if unit in instance:  # written within the instance
                instance[unit] |= values
                continue
            name = instance.setdefault(f"{unit}-config-name", "global")
            sections = form.setdefault(f"{unit}s", {})
            sections[name] = sections.get(name, {}) | values


def _rules_of(known: TaskConfig) -> dict[str, Any]:
    """Return the rules with which the task is shown, by the object's fields."""
    return {
        "table_migrate_rule": [MigrateRule.model_validate(rule) for rule in shown_rules(known)],
        "binlog_filter_rule": {name: EventRule.model_validate(rule) for name, rule in shown_events(known).items()},
    }


def _has_rules_of(task: Task, known: TaskConfig) -> bool:
    """Return whether the object's rules are those that it would be shown with."""
    sources = {one.source_id for one in known.mysql_instances}
    listed = {one.source_name for one in task.source_config.source_conf}
    return listed <= sources and all(getattr(task, key) == rules for key, rules in _rules_of(known).items())


def _replace_rules(task: Task, form: dict[str, Any], instances: list[dict[str, Any]], known: TaskConfig | None) -> None:
    if known is not None and not _are_sayable(known):
        cause = "the task has rules that this object has no place for: change it by its file, `unshard ctl update-task`"
        raise ClusterError("CLUSTER-016", cause=cause)
    for key in SECTIONS:
        form.pop(key, None)
    for instance in instances:
        for key in USES:
            instance.pop(key, None)
    by_name = {instance["source-id"]: instance for instance in instances}
    form |= to_sections(task.table_migrate_rule, task.binlog_filter_rule, by_name)


def _are_sayable(known: TaskConfig) -> bool:
    """Return whether a task's rules, shown as an object's and read back, are the same."""
    instances = {one.source_id: {"source-id": one.source_id} for one in known.mysql_instances}
    rules = [MigrateRule.model_validate(rule) for rule in shown_rules(known)]
    events = {name: EventRule.model_validate(rule) for name, rule in shown_events(known).items()}
    sections = to_sections(rules, events, instances)
    form = known.model_dump(mode="json", by_alias=True, exclude_unset=True)
    again = {key: value for key, value in form.items() if key not in SECTIONS} | sections
    again["mysql-instances"] = [
        {key: value for key, value in one.items() if key not in USES} | instances[one["source-id"]]
        for one in form["mysql-instances"]
    ]
    return meaning(TaskConfig.model_validate(again)) == meaning(known)


def from_config(task: TaskConfig) -> dict[str, Any]:
    """Return DM's object of a task, without its password."""
    target = task.target_database
    return {
        "name": task.name,
        "task_mode": task.task_mode,
        "shard_mode": task.shard_mode,
        "meta_schema": task.meta_schema,
        "enhance_online_schema_change": task.online_ddl,
        "on_duplicate": "",
        "ignore_checking_items": list(task.ignore_checking_items),
        "target_config": {
            "host": target.host, "port": target.port, "user": target.user,
            "password": HIDDEN if target.password else "", "session": dict(target.session),
        },
        "binlog_filter_rule": shown_events(task),
        "table_migrate_rule": shown_rules(task),
        "source_config": {"source_conf": [_conf(one) for one in task.mysql_instances]},
    }  # fmt: skip


def _conf(instance: InstanceConfig) -> dict[str, Any]:
    meta = instance.meta.model_dump(exclude_defaults=True) if instance.meta is not None else {}
    return {"source_name": instance.source_id} | meta
