"""Keys of DM that are not built yet are refused by name; keys without effect give a notice; none is passed over."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from unshard.config.keys import section_of
from unshard.config.section import Later, NoEffect, Section
from unshard.config.source import SourceConfig
from unshard.config.task import TaskConfig

INSTANCE = {"source-id": "s1"}
ROUTE = {"schema-pattern": "a", "target-schema": "b"}
MAPPING = {
    "schema-pattern": "a", "table-pattern": "t", "source-column": "id", "target-column": "id",
    "expression": "partition id", "arguments": ["1", "", ""],
}  # fmt: skip

REFUSED_IN_TASK: list[tuple[str, Any]] = [
    ("timezone", "+08:00"),
    ("mydumpers.d.extra-args", "--consistency snapshot"),
    ("mydumpers.d.extra-args", "--no-views=false"),
    ("mydumpers.d.extra-args", "--no-schemas"),
    ("loaders.l.dir", "s3://bucket/dump"),
    ("loaders.l.on-duplicate-physical", "manual"),
]

NEUTRAL_IN_TASK: list[tuple[str, Any]] = [
    ("is-sharding", False),
    ("shard-mode", ""),
    ("online-ddl", False),
    ("online-ddl-scheme", "pt"),
    ("shadow-table-rules", [r"^_(.+)_(?:new|gho)$"]),
    ("filters", {}),
    ("ignore-checking-items", []),
    ("ignore-checking-items", ["all", "version", "primary_key"]),
    ("target-database.session.foreign_key_checks", "0"),
    ("target-database.session.foreign_key_checks", "1"),
    ("loaders.l.import-mode", "loader"),
    ("loaders.l.analyze", "optional"),
    ("validators.v.mode", "none"),
    ("validators.v.mode", "fast"),
    ("validators.v.mode", "full"),
    ("validators.v.worker-count", 8),
    ("validators.v.max-pending-row-size", "1g"),
    ("validators.v.validate-interval", "10s"),
]

WITHOUT_EFFECT: list[tuple[str, Any]] = [
    ("column-mappings.m.create-table-query", "CREATE TABLE t (a INT)"),
    ("enable-heartbeat", True),
    ("heartbeat-update-interval", 2),
    ("heartbeat-report-interval", 2),
    ("ansi-quotes", True),
    ("collation_compatible", "strict"),
    ("experimental.async-checkpoint-flush", True),
    ("remove-meta", True),
    ("target-database.max-allowed-packet", 1),
    ("mydumpers.d.mydumper-path", "/usr/bin/mydumper"),
    ("mydumpers.d.skip-tz-utc", False),
    ("syncers.s.meta-file", "x"),
    ("loaders.l.import-mode", "physical"),
    ("loaders.l.import-mode", "import-into"),
    ("loaders.l.sorting-dir-physical", "/tmp"),
    ("loaders.l.checksum-physical", "off"),
    ("loaders.l.analyze", "required"),
    ("loaders.l.disk-quota-physical", 1),
    ("loaders.l.range-concurrency", 1),
    ("loaders.l.compress-kv-pairs", "gzip"),
    ("loaders.l.pd-addr", "127.0.0.1:2379"),
    ("validators.v.row-error-delay", "1h"),
    ("validators.v.meta-flush-interval", "1m"),
    ("syncers.s.queue-size", 10),
    ("syncers.s.enable-gtid", True),
    ("syncers.s.max-retry", 1),
    ("syncers.s.auto-fix-gtid", True),
    ("syncers.s.disable-detect", True),
    ("syncers.s.enable-ansi-quotes", True),
]

USES = {
    "routes": ("route-rules", ["r"]),
    "column-mappings": ("column-mapping-rules", ["m"]),
    "mydumpers": ("mydumper-config-name", "d"),
    "loaders": ("loader-config-name", "l"),
    "syncers": ("syncer-config-name", "s"),
    "validators": ("validator-config-name", "v"),
}


def changes(path: str, value: Any) -> dict[str, Any]:
    """Top-level keys that set a dotted path in an otherwise valid task, with the rule used by its instance."""
    top, *rest = path.split(".")
    if not rest:
        return {top: value}
    begun: dict[str, dict[str, Any]] = {
        "routes": {"r": dict(ROUTE)},
        "column-mappings": {"m": dict(MAPPING)},
        "target-database": {"host": "h", "port": 1, "user": "u"},
    }
    whole = begun.get(top, {})
    inner = whole
    for part in rest[:-1]:
        inner = inner.setdefault(part, {})
    inner[rest[-1]] = value
    changed: dict[str, Any] = {top: whole}
    if top in USES:
        changed["mysql-instances"] = [{**INSTANCE, USES[top][0]: USES[top][1]}]
    return changed


@pytest.mark.parametrize(("path", "value"), REFUSED_IN_TASK, ids=str)
def test_a_key_that_is_not_built_yet_is_refused_by_name(files: Any, path: str, value: Any) -> None:
    first, *rest = files.task_problems(**changes(path, value))
    assert first.startswith(f"not supported yet: {path} (")
    assert all("no instance uses it" in other for other in rest)


@pytest.mark.parametrize(("path", "value"), NEUTRAL_IN_TASK, ids=str)
def test_values_that_ask_for_nothing_are_accepted(files: Any, path: str, value: Any) -> None:
    assert files.read_task(**changes(path, value)).notices == ()


@pytest.mark.parametrize(("path", "value"), WITHOUT_EFFECT, ids=str)
def test_a_key_without_effect_gives_a_notice(files: Any, path: str, value: Any) -> None:
    (notice,) = files.read_task(**changes(path, value)).notices
    assert notice.startswith(f"{path} has no effect: ")


@pytest.mark.parametrize(
    ("path", "value"),
    [
        ("enable-relay", True),
        ("from.max-allowed-packet", 5),
        ("auto-fix-gtid", True),
        ("meta-dir", "x"),
        ("charset", "utf8"),
        ("tracer", {"a": 1}),
    ],
)
def test_so_does_one_of_a_source(files: Any, path: str, value: Any) -> None:
    changed = changes(path, value)
    if "from" in changed:
        changed["from"] |= {"host": "h", "port": 1, "user": "u"}
    (notice,) = files.read_source(**changed).notices
    assert notice.startswith(f"{path} has no effect: ")


def test_a_starting_point_outside_of_incremental_gives_a_notice(files: Any) -> None:
    instance = {**INSTANCE, "meta": {"binlog-name": "mysql-bin.000001"}}
    assert files.read_task(task_mode="incremental", mysql_instances=[instance]).notices == ()
    (notice,) = files.read_task(task_mode="full", mysql_instances=[instance]).notices
    assert notice == "mysql-instances[0].meta has no effect: task-mode full begins at its own dump"


def marked(model: type[Section], kind: type, seen: set[type[Section]]) -> Iterator[str]:
    seen.add(model)
    for name, info in model.model_fields.items():
        if any(isinstance(mark, kind) for mark in info.metadata):
            yield str(info.alias or name)
        inner = section_of(info.annotation)[1]
        if inner is not None and inner not in seen:
            yield from marked(inner, kind, seen)


def test_every_mark_on_a_key_of_a_task_has_a_case_here() -> None:
    refused = {path.rpartition(".")[2] for path, _ in REFUSED_IN_TASK}
    assert set(marked(TaskConfig, Later, set())) - refused == set()
    told = {path.rpartition(".")[2] for path, _ in WITHOUT_EFFECT}
    assert set(marked(TaskConfig, NoEffect, set())) - told == set()


def test_every_key_of_both_files_tells_what_it_is_for() -> None:
    def without(model: type[Section], seen: set[type[Section]]) -> Iterator[str]:
        seen.add(model)
        for name, info in model.model_fields.items():
            if not (info.description or "").endswith("."):
                yield f"{model.__name__}.{name}"
            inner = section_of(info.annotation)[1]
            if inner is not None and inner not in seen:
                yield from without(inner, seen)

    assert [*without(TaskConfig, set()), *without(SourceConfig, set())] == []
