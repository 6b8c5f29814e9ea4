"""DM's task object, and our task file: one becomes the other.

The object knows less than the file: extracted columns, expression filters, column mappings and the like have no place
in it. A task that uses them is shown without them; a change by an object leaves them as they are, and one of the rules
is then refused (`to_text`): it is made by the file (`unshard ctl update-task`).
"""

from __future__ import annotations

from typing import Any

import yaml
from pydantic import BaseModel, ConfigDict, Field

from unshard.config.secret import HIDDEN
from unshard.config.task import InstanceConfig, TaskConfig
from unshard.errors import ClusterError
from unshard.web.rest.rule_form import (
    SECTIONS,
    USES,
    EventRule,
    MigrateRule,
    meaning,
    shown_events,
    shown_rules,
    to_sections,
)
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
    """The task file. What the object has no place for, or leaves out, stays as `known` has it: a password (also one
    shown as `******`), certificates, settings of units, rules where the object's are those of `known`.

    Raises ClusterError CLUSTER-016 for other rules than those of `known` where its own can't all be said in an object:
    they would be lost.
    """
    form = known.model_dump(mode="json", by_alias=True, exclude_unset=True) if known is not None else {}
    target = task.target_config
    login: dict[str, Any] = {"host": target.host, "port": target.port, "user": target.user}
    if known is None or target.password not in ("", HIDDEN):
        login["password"] = target.password
    session = {"session": target.session} if target.session else {}
    optional = {
        "shard-mode": task.shard_mode,
        "meta-schema": task.meta_schema,
        "ignore-checking-items": task.ignore_checking_items,
    }
    form |= {"name": task.name, "task-mode": task.task_mode}
    form |= {key: value for key, value in optional.items() if value}
    form["online-ddl"] = task.enhance_online_schema_change
    form["target-database"] = form.get("target-database", {}) | login | session | security_section(target.security)
    before = {one["source-id"]: one for one in form.get("mysql-instances", ())}
    instances = [_instance(conf, before.get(conf.source_name, {})) for conf in task.source_config.source_conf]
    form["mysql-instances"] = instances
    _add_units(task, form, instances)
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


def _has_rules_of(task: Task, known: TaskConfig) -> bool:
    """Whether the object's rules are those that it would be shown with."""
    rules = [MigrateRule.model_validate(rule) for rule in shown_rules(known)]
    events = {name: EventRule.model_validate(rule) for name, rule in shown_events(known).items()}
    sources = {one.source_id for one in known.mysql_instances}
    listed = {one.source_name for one in task.source_config.source_conf}
    return listed <= sources and task.table_migrate_rule == rules and task.binlog_filter_rule == events


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
    """Whether the rules of a task, shown as an object's, say the same when they are taken back."""
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
        "binlog_filter_rule": shown_events(task),
        "table_migrate_rule": shown_rules(task),
        "source_config": {"source_conf": [_conf(one) for one in task.mysql_instances]},
    }  # fmt: skip


def _conf(instance: InstanceConfig) -> dict[str, Any]:
    meta = instance.meta.model_dump(exclude_defaults=True) if instance.meta is not None else {}
    return {"source_name": instance.source_id} | meta
