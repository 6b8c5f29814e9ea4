"""`unshard explain`: why a table or a statement is migrated, or not, and the SQL on the target."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path

from rich.console import Console

from unshard.config.files import read_files
from unshard.config.source import SourceConfig
from unshard.config.subtask import SubtaskConfig, plan_subtasks
from unshard.config.task import InstanceConfig, TaskConfig
from unshard.errors import ConfigError
from unshard.explain.ends import Ends, connected, names_of
from unshard.explain.finding import LEFT_OUT, STOPS, Explained, RuleFinding, check_modes, table_name
from unshard.explain.statement import Asked, explain_statement
from unshard.explain.table import explain_table
from unshard.transform.source_rules import SourceRules

_LABEL_WIDTH = 19
_STYLES = {STOPS: "bold red", LEFT_OUT: "bold yellow", "nothing": "bold yellow", "skipped": "bold yellow"}


@dataclass(frozen=True, slots=True)
class ExplainWish:
    """The arguments of `unshard explain`, as they were typed; either `table` or `sql` is set."""

    task: Path
    sources: Sequence[Path]
    source_id: str | None
    table: str | None
    sql: str | None
    schema: str
    sql_mode: str
    connect: bool
    as_json: bool


def show_explanation(wish: ExplainWish, console: Console) -> None:
    """Print it. Raises ConfigError CONFIG-001 to CONFIG-005, CONFIG-025 to CONFIG-027; with `connect` of either end."""
    name = table_name(wish.table) if wish.table is not None else None
    check_modes(wish.sql_mode)
    configs, bare = _configs(wish)
    chosen = [config for config in configs if wish.source_id in (None, config.source_id)]
    if not chosen:
        known = ", ".join(config.source_id for config in configs)
        raise ConfigError("CONFIG-026", values={"source": wish.source_id, "known": known})
    names = names_of(configs) if wish.connect else []
    found: list[Explained] = []
    for config in chosen:
        with connected(config, configs, names) if wish.connect else nullcontext() as ends:
            rules = SourceRules.of(config)
            found.append(
                explain_table(config, rules, name, ends) if name is not None else _statement(wish, config, rules, ends)
            )
    subject = str(name) if name is not None else wish.sql or ""
    if wish.as_json:
        key = "table" if name is not None else "sql"
        form = {"task": configs[0].name, key: subject, "sources": [one.form() for one in found]}
        _say(console, json.dumps(form, indent=2, ensure_ascii=False))
        return
    for one in found:
        _say(console, f"{subject}  source {one.source}", "bold")
        _say(console, f"  → {one.outcome}", _STYLES.get(one.says, "bold green"))
        for line in _lines(one, subject):
            _say(console, line)
        _say(console, "")
    bare = [source for source in bare if wish.source_id in (None, source)]
    if bare:
        _say(console, f"note: without a --source file the filters and case-sensitive of {', '.join(bare)} don't count")


def _statement(wish: ExplainWish, config: SubtaskConfig, rules: SourceRules, ends: Ends | None) -> Explained:
    asked = Asked(wish.sql or "", wish.schema, wish.sql_mode, config.source.flavor != "mysql")
    return explain_statement(rules, asked, ends)


def _configs(wish: ExplainWish) -> tuple[tuple[SubtaskConfig, ...], list[str]]:
    """Return the subtasks, and the sources without a file, which are explained by the rules alone.

    Raises CONFIG-005.
    """
    task, sources, _ = read_files(wish.task, wish.sources)
    given = {source.source_id for source in sources}
    bare = [one for one in task.mysql_instances if one.source_id not in given and not wish.connect]
    return plan_subtasks(task, [*sources, *(_bare(task, one) for one in bare)]), [one.source_id for one in bare]


def _bare(task: TaskConfig, instance: InstanceConfig) -> SourceConfig:
    meta = instance.meta if task.task_mode == "incremental" else None
    by_gtid = meta is not None and not meta.binlog_name
    nowhere = {"host": "none", "port": 1, "user": "none"}
    return SourceConfig.model_validate({"source-id": instance.source_id, "from": nowhere, "enable-gtid": by_gtid})


def _say(console: Console, line: str, style: str = "") -> None:
    console.print(line, style=style or None, markup=False, highlight=False, soft_wrap=True)


def _lines(one: Explained, subject: str) -> Iterator[str]:
    for group in one.groups:
        apart = group.of not in ("", subject)
        if apart:
            yield f"  {group.of}"
        indent = "    " if apart else "  "
        label = ""
        for finding in group.findings:
            named = _label(finding)
            yield f"{indent}{(named if named != label else '').ljust(_LABEL_WIDTH)}{finding.text}"
            label = named
    if one.error is not None:
        yield f"  {'stops with'.ljust(_LABEL_WIDTH)}{one.error.code}: {one.error.message}"
        if one.error.cause:
            yield f"  {'why'.ljust(_LABEL_WIDTH)}{one.error.cause}"
        yield f"  {'what to do'.ljust(_LABEL_WIDTH)}{one.error.hint}"
    if one.written:
        yield "  by hand, on the target:" if one.by_hand else "  on the target:"
    for written in one.written:
        head = f"{written.change}, {written.mode}".ljust(_LABEL_WIDTH - 2) if written.change else ""
        yield f"    {head}{written.sql}"


_LABELS = {"block-allow-list": "block-allow list", "online-ddl": "online DDL"}


def _label(finding: RuleFinding) -> str:
    return _LABELS.get(finding.kind, finding.kind.replace("-", " "))
