"""DM's task object, and our task file: one becomes the other.

The object knows less than the file: extracted columns, expression filters, column mappings and the like have no place
in it, so a task that uses them is shown without them and is changed by its file (`unshard ctl update-task`).
"""

from __future__ import annotations

from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, Field

from unshard.config.redact import HIDDEN
from unshard.config.task import InstanceConfig, TaskConfig
from unshard.web.rest.source_form import Security, security_section


class _Object(BaseModel):
    model_config = ConfigDict(extra="forbid", hide_input_in_errors=True)


class Target(_Object):
    host: str
    port: int
    user: str
    password: str = Field(default="", repr=False)
    security: Security | None = None
    session: dict[str, str] = {}


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


class FullConf(_Object):
    export_threads: int | None = None
    import_threads: int | None = None
    data_dir: str | None = None
    consistency: str | None = None


class IncrConf(_Object):
    repl_threads: int | None = None
    repl_batch: int | None = None
    safe_mode: bool | None = None


class SourceConf(_Object):
    source_name: str
    binlog_name: str | None = None
    binlog_pos: int | None = None
    binlog_gtid: str | None = None


class SourceSettings(_Object):
    full_migrate_conf: FullConf | None = None
    incr_migrate_conf: IncrConf | None = None
    source_conf: list[SourceConf] = Field(min_length=1)


class Task(_Object):
    """One migration."""

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
    """The task file. Without a password of the target, or with `******`, the one of `known` stays."""
    target = task.target_config
    password = target.password
    if password in ("", HIDDEN):
        password = known.target_database.password if known is not None else ""
    login: dict[str, Any] = {"host": target.host, "port": target.port, "user": target.user, "password": password}
    form: dict[str, Any] = {"name": task.name, "task-mode": task.task_mode}
    optional = {
        "shard-mode": task.shard_mode,
        "meta-schema": task.meta_schema,
        "ignore-checking-items": task.ignore_checking_items,
    }
    form |= {key: value for key, value in optional.items() if value}
    form["online-ddl"] = task.enhance_online_schema_change
    session = {"session": target.session} if target.session else {}
    form["target-database"] = login | session | security_section(target.security)
    instances = [_instance(conf) for conf in task.source_config.source_conf]
    by_name = {instance["source-id"]: instance for instance in instances}
    form["mysql-instances"] = instances
    _add_units(task, form, instances)
    _add_rules(task, form, by_name)
    return yaml.safe_dump(form, sort_keys=False, allow_unicode=True)


def _instance(conf: SourceConf) -> dict[str, Any]:
    meta = conf.model_dump(exclude_none=True, exclude={"source_name"})
    start = {"meta": {key.replace("_", "-"): value for key, value in meta.items()}} if meta else {}
    return {"source-id": conf.source_name} | start


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
        if values:
            form[f"{unit}s"] = {"global": values}
            for instance in instances:
                instance[f"{unit}-config-name"] = "global"


def _add_rules(task: Task, form: dict[str, Any], instances: dict[str, dict[str, Any]]) -> None:
    """Routes, event filters and block-allow lists, named by their number as DM names them."""
    routes: dict[str, Any] = {}
    filters: dict[str, Any] = {}
    allowed: dict[str, Any] = {}
    for number, rule in enumerate(task.table_migrate_rule):
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
            events = task.binlog_filter_rule.get(named, EventRule())
            name = f"{source.source_name}-filter_rule-{named}-{number}"
            found = {"events": events.ignore_event, "sql-pattern": events.ignore_sql}
            filters[name] = pattern | {key: value for key, value in found.items() if value} | {"action": "Ignore"}
            instance.setdefault("filter-rules", []).append(name)
        taken = allowed.setdefault(source.source_name, {"do-tables": []})
        entry = {"db-name": source.schema_name, "tbl-name": source.table or "*"}
        if entry not in taken["do-tables"]:
            taken["do-tables"].append(entry)
        instance["block-allow-list"] = source.source_name
    rules: dict[str, Any] = {"routes": routes, "filters": filters, "block-allow-list": allowed}
    form |= {key: value for key, value in rules.items() if value}


def from_config(task: TaskConfig) -> dict[str, Any]:
    """DM's object of a task, without its password."""
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
        "binlog_filter_rule": {
            name: {"ignore_event": list(rule.events), "ignore_sql": list(rule.sql_pattern)}
            for name, rule in task.filters.items()
        },
        "table_migrate_rule": [rule for one in task.mysql_instances for rule in _rules(task, one)],
        "source_config": {"source_conf": [_conf(one) for one in task.mysql_instances]},
    }  # fmt: skip


def _rules(task: TaskConfig, instance: InstanceConfig) -> list[dict[str, Any]]:
    found = []
    for name in instance.route_rules:
        route = task.routes[name]
        source = {"source_name": instance.source_id, "schema": route.schema_pattern, "table": route.table_pattern or ""}
        target = {"schema": route.target_schema, "table": route.target_table or ""}
        found.append({"source": source, "target": target, "binlog_filter_rule": list(instance.filter_rules)})
    return found


def _conf(instance: InstanceConfig) -> dict[str, Any]:
    meta = instance.meta.model_dump(exclude_defaults=True) if instance.meta is not None else {}
    return {"source_name": instance.source_id} | meta
