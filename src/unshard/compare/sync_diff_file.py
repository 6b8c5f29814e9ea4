"""The configuration file of sync-diff-inspector: its sources, routes and tables, read unchanged.

Settings without an effect here are reported: rows are looked at again by themselves, chunks are sized by time, and
nothing is repaired. A file with what would change the outcome and is not supported is refused: `check-struct-only`,
`snapshot`, `dm-addr`.
"""

from __future__ import annotations

import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Literal

from pydantic import Field, ValidationError

from unshard.compare.sides import SourceSide, TableWish
from unshard.config.database import DatabaseConfig, SecurityConfig
from unshard.config.rules import RouteRule
from unshard.config.section import Section
from unshard.config.table_rules import parse_rule
from unshard.errors import CompareError, Where
from unshard.model.table import TableName
from unshard.mysql.connection import Endpoint
from unshard.mysql.endpoint import to_endpoint
from unshard.transform.route import Router
from unshard.transform.source_rules import TableFilter


class DiffSecurity(Section):
    """TLS of a data source, under sync-diff-inspector's names."""

    ca_path: str = ""
    cert_path: str = ""
    key_path: str = ""
    ca_bytes: str = ""
    cert_bytes: str = ""
    key_bytes: str = ""


class DiffDataSource(Section):
    """A server, and the routes for its tables."""

    host: str
    port: int = Field(ge=1, le=65535)
    user: str
    password: str = Field(default="", repr=False)
    sql_mode: str = ""
    session: dict[str, Any] = Field(default_factory=dict)
    security: DiffSecurity = Field(default_factory=DiffSecurity)
    sql_hint_use_index: str = ""
    route_rules: tuple[str, ...] = ()
    snapshot: Literal[""] = ""


class DiffTableConfig(Section):
    """Options for some tables of the target."""

    target_tables: tuple[str, ...]
    ignore_columns: tuple[str, ...] = ()
    index_fields: tuple[str, ...] = ()
    range: str = ""
    collation: str = ""
    chunk_size: int = 0


class DiffTask(Section):
    """The servers and tables that are compared."""

    source_instances: tuple[str, ...] = Field(min_length=1)
    target_instance: str
    target_check_tables: tuple[str, ...] = Field(min_length=1)
    target_configs: tuple[str, ...] = ()
    output_dir: str = ""


class DiffFile(Section):
    """The whole file."""

    check_thread_count: int = Field(default=4, ge=1)
    export_fix_sql: bool = True
    check_struct_only: Literal[False] = False
    check_data_only: bool = False
    skip_non_existing_table: bool = False
    splitter_strategy: str = ""
    dm_addr: Literal[""] = ""
    dm_task: Literal[""] = ""
    data_sources: dict[str, DiffDataSource]
    routes: dict[str, RouteRule] = Field(default_factory=dict)
    table_configs: dict[str, DiffTableConfig] = Field(default_factory=dict)
    task: DiffTask

    @property
    def target(self) -> Endpoint:
        """Server that is the target."""
        return _endpoint(self.data_sources[self.task.target_instance])

    def sides(self) -> tuple[SourceSide, ...]:
        """Return the sources; how their changes come to the target is not known."""
        return tuple(self._side(name) for name in self.task.source_instances)

    def wanted(self, name: TableName) -> bool:
        """Return whether that table of the target is compared."""
        return TableFilter(self.task.target_check_tables).takes(name)

    def wish_for(self, name: TableName) -> TableWish:
        """Return the first of the task's `target-configs` that is for the table."""
        for one in map(self.table_configs.__getitem__, self.task.target_configs):
            if TableFilter(one.target_tables).takes(name):
                return TableWish(one.range, frozenset(column.lower() for column in one.ignore_columns if column))
        return TableWish()

    def notices(self) -> Iterator[str]:
        """Yield notices about keys that have no effect; one sentence each."""
        if self.export_fix_sql and not self.task.output_dir:
            yield "export-fix-sql has no effect without an output-dir"
        for name, one in self.table_configs.items():
            for key in ("index-fields", "collation", "chunk-size"):
                value = getattr(one, key.replace("-", "_"))
                if value and value != ("",):
                    yield f"table-configs.{name}.{key} has no effect: ranges follow the target's key, sized by time"

    def _side(self, name: str) -> SourceSide:
        source = self.data_sources[name]
        router = Router({rule: self.routes[rule] for rule in source.route_rules})
        return SourceSide(name, _endpoint(source), lambda _: True, router.route)


def load_diff_file(path: Path) -> DiffFile:
    """Read it. Raises CompareError COMPARE-010."""
    try:
        found = DiffFile.model_validate(tomllib.loads(path.read_text(encoding="utf-8")))
    except (OSError, UnicodeDecodeError) as error:
        raise _refused(path, f"it can't be read: {type(error).__name__}") from None
    except tomllib.TOMLDecodeError as error:
        raise _refused(path, f"it is no TOML: {error}") from None
    except ValidationError as error:
        first = error.errors()[0]
        at = ".".join(map(str, first["loc"]))
        raise _refused(path, f"{at}: {first['msg']}") from None
    for fault in _faults(found):
        raise _refused(path, fault)
    return found


def _faults(found: DiffFile) -> Iterator[str]:
    """Yield the names that nothing has, and the patterns that are malformed."""
    task = found.task
    for name in (*task.source_instances, task.target_instance):
        if name not in found.data_sources:
            yield f"data-sources has no {name}, which the task names"
    for name in task.target_configs:
        if name not in found.table_configs:
            yield f"table-configs has no {name}, which target-configs names"
    for name, source in found.data_sources.items():
        for rule in source.route_rules:
            if rule not in found.routes:
                yield f"routes has no {rule}, which data-sources.{name} names"
    for rules in (task.target_check_tables, *(one.target_tables for one in found.table_configs.values())):
        for rule in rules:
            try:
                parse_rule(rule)
            except ValueError as error:
                yield f"{rule} is no table of the target: {str(error).removeprefix('--filter ')}"


def _endpoint(source: DiffDataSource) -> Endpoint:
    security = source.security
    tls = SecurityConfig(
        ssl_ca=security.ca_path,
        ssl_cert=security.cert_path,
        ssl_key=security.key_path,
        ssl_ca_bytes=security.ca_bytes,
        ssl_cert_bytes=security.cert_bytes,
        ssl_key_bytes=security.key_bytes,
    )
    variables = {name: str(value) for name, value in source.session.items()}
    database = DatabaseConfig(
        host=source.host, port=source.port, user=source.user, password=source.password, session=variables, security=tls
    )
    return to_endpoint(database)


def _refused(path: Path, fault: str) -> CompareError:
    return CompareError("COMPARE-010", Where(file=str(path)), values={"file": path.name, "fault": fault})
