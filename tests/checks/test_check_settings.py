"""Settings of the source: each item fine, lacking, and mended by what it prints."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from types import MappingProxyType

import pytest

from support.checked_tasks import found, mended, report_of, with_keys
from support.task_runs import TaskFiles, newest
from support.waiting import wait_until
from unshard.checks import server as settings
from unshard.checks.facts import LogFilters, SourceFacts, log_filters, read_facts
from unshard.config.files import load_source, load_task
from unshard.config.subtask import plan_subtasks
from unshard.mysql.connection import session
from unshard.mysql.flavour import Flavour, identify
from unshard.testing.mariadb_server import MariadbServer

pytestmark = pytest.mark.server


@pytest.fixture
def facts(files: TaskFiles) -> SourceFacts:
    files.write()
    configs = plan_subtasks(load_task(files.task_path), [load_source(path) for path in files.source_paths])
    (source,) = read_facts(configs).sources
    return source


@pytest.fixture
def restored(changed_source: MariadbServer) -> Iterator[MariadbServer]:
    yield changed_source
    changed_source.run("SET GLOBAL binlog_format = 'ROW'", "SET GLOBAL binlog_row_image = 'FULL'")


def test_a_sound_task_has_nothing_to_tell(files: TaskFiles) -> None:
    report = report_of(files)
    assert report.passed
    assert [(result.name, result.errors) for result in report.results if result.errors] == []
    assert report.summary() == {"passed": True, "total": 27, "successful": 27, "failed": 0, "warning": 0}


def test_binlog_format(files: TaskFiles, restored: MariadbServer) -> None:
    restored.run("SET GLOBAL binlog_format = 'MIXED'")
    mended(files, "mysql_binlog_format", restored, "fail", "MIXED")


def test_row_images_with_a_part_of_each_row(files: TaskFiles, restored: MariadbServer) -> None:
    restored.run("SET GLOBAL binlog_row_image = 'MINIMAL'")
    with_safe_mode = with_keys(files, delivery="at-least-once")
    assert [finding.severity for finding in found(with_safe_mode, "mysql_binlog_row_image")] == ["fail"]
    mended(files, "mysql_binlog_row_image", restored, "warn", "MINIMAL")


def test_items_that_a_mode_has_no_use_for(files: TaskFiles) -> None:
    names = {result.name for result in report_of(with_keys(files, task_mode="full")).results}
    assert "mysql_binlog_enable" in names
    assert not names & {"mysql_binlog_format", "source db replication privilege checker", "meta position check"}
    dump = {result.name for result in report_of(with_keys(files, task_mode="dump")).results}
    assert not dump & {"target db privilege checker", "same table name checker"}


def test_ignored_items_do_not_run(files: TaskFiles) -> None:
    names = {r.name for r in report_of(with_keys(files, ignore_checking_items=["version", "conn_number"])).results}
    assert not names & {"mysql_version", "dumper_conn_number_checker", "loader_conn_number_checker"}
    assert report_of(with_keys(files, ignore_checking_items=["all"])).results == ()


def with_settings(facts: SourceFacts, **values: str) -> SourceFacts:
    return replace(facts, end=replace(facts.end, settings=MappingProxyType({**facts.end.settings, **values})))


def test_log_bin_and_server_id(facts: SourceFacts) -> None:
    assert list(settings.binlog_enable(facts)) == []
    (off,) = settings.binlog_enable(with_settings(facts, log_bin="OFF"))
    assert off.severity == "fail"
    assert "log_bin" in off.instruction
    assert list(settings.server_id(facts)) == []
    (zero,) = settings.server_id(with_settings(facts, server_id="0"))
    assert zero.severity == "warn"
    assert zero.instruction.startswith("SET GLOBAL server_id")


@pytest.mark.parametrize(
    ("flavour", "text", "version", "told"),
    [
        (Flavour.MARIADB, "10.11.6-MariaDB", (10, 11, 6), ""),
        (Flavour.MARIADB, "11.8.2-MariaDB", (11, 8, 2), ""),
        (Flavour.MARIADB, "12.0.1-MariaDB", (12, 0, 1), "newer than 11.8"),
        (Flavour.MARIADB, "5.5.5-10.1.2-MariaDB", (10, 1, 2), "too old"),
        (Flavour.MYSQL, "5.7.44-log", (5, 7, 44), ""),
        (Flavour.MYSQL, "9.7.4", (9, 7, 4), ""),
        (Flavour.MYSQL, "5.5.62", (5, 5, 62), "too old"),
        (Flavour.MYSQL, "9.8.0", (9, 8, 0), "newer than 9.7"),
        (Flavour.MYSQL, "8.0.11-TiDB-v8.5.0", (8, 0, 11), "TiDB"),
    ],
)
def test_versions(facts: SourceFacts, flavour: Flavour, text: str, version: tuple[int, int, int], told: str) -> None:
    server = replace(facts.end.server, flavour=flavour, version=version, version_text=text)
    found = list(settings.version(replace(facts, end=replace(facts.end, server=server, version=text))))
    assert [finding.severity for finding in found] == ["warn"] * bool(told)
    assert all(told in finding.short_error for finding in found)


def test_schemas_that_are_not_logged(facts: SourceFacts, schema: str) -> None:
    assert list(settings.binlog_db(facts)) == []
    assert list(settings.binlog_db(replace(facts, filters=LogFilters((schema, "other"), ("other",))))) == []
    (other,) = settings.binlog_db(replace(facts, filters=LogFilters(("other",))))
    assert other.severity == "fail"
    assert schema in other.short_error
    assert "binlog_do_db" in other.instruction
    (left_out,) = settings.binlog_db(replace(facts, filters=LogFilters(left=(schema,))))
    assert "binlog_ignore_db" in left_out.short_error


def test_binlog_filters_that_cannot_be_asked_are_told(files: TaskFiles, changed_source: MariadbServer) -> None:
    user = files.schemas[0]
    changed_source.run(f"CREATE USER {user}@'%'", f"GRANT SELECT ON *.* TO {user}@'%'")
    (server,) = files.sources.values()
    asked = replace(server.endpoint, user=user)
    with session(asked, "source") as connection:
        filters = log_filters(connection, identify(connection))
    changed_source.run(f"DROP USER {user}@'%'")
    assert "denied" in filters.fault.lower()
    assert not filters.taken


def test_what_could_not_be_asked_is_a_warning(facts: SourceFacts) -> None:
    (finding,) = settings.binlog_db(replace(facts, filters=LogFilters(fault="Access denied")))
    assert finding.severity == "warn"
    assert "Access denied" in finding.short_error


def test_binlog_filters_are_read_from_the_server(files: TaskFiles, schema: str) -> None:
    with MariadbServer({"binlog_ignore_db": schema}) as source:
        source.run(f"CREATE DATABASE {schema}", f"CREATE TABLE {schema}.t (id INT PRIMARY KEY)")
        (finding,) = found(replace(files, sources={"s1": source}), "binlog_do_db/binlog_ignore_db check")
    assert schema in finding.short_error


def meta(files: TaskFiles, **start: object) -> TaskFiles:
    form = {key.replace("_", "-"): value for key, value in start.items()}
    return replace(with_keys(files, task_mode="incremental"), instance={"meta": form})


def test_the_place_of_meta(files: TaskFiles, changed_source: MariadbServer) -> None:
    end = newest(changed_source)
    assert found(meta(files, binlog_name=end.file, binlog_pos=end.offset), "meta position check") == []
    assert found(meta(files, binlog_name=end.file, binlog_pos=4), "meta position check") == []
    for start, told in (
        ({"binlog_name": "mysql-bin.000099", "binlog_pos": 4}, "no binlog file"),
        ({"binlog_name": end.file, "binlog_pos": end.offset + 1}, "behind the end"),
        ({"binlog_name": end.file, "binlog_pos": 5}, "no event begins"),
    ):
        (finding,) = found(meta(files, **start), "meta position check")
        assert finding.severity == "fail"
        assert told in finding.short_error


def test_the_gtid_of_meta(files: TaskFiles) -> None:
    with MariadbServer() as source:
        source.run(f"CREATE DATABASE {files.schemas[0]}")
        files = replace(files, sources={"s1": source}, source={"enable-gtid": True})
        known = source.query("SELECT @@gtid_binlog_pos")[0][0]
        assert found(meta(files, binlog_gtid=known), "meta position check") == []
        source.run("CREATE DATABASE later", "FLUSH BINARY LOGS")

        def purged() -> bool:
            source.run("PURGE BINARY LOGS TO 'mysql-bin.000002'")  # InnoDB may still hold on to the first for a moment
            return str(source.query("SHOW BINARY LOGS")[0][0]) == "mysql-bin.000002"

        wait_until(purged, "the first file is gone")
        (finding,) = found(meta(files, binlog_gtid=known), "meta position check")
    assert finding.severity == "fail"
    assert "mysql-bin.000002" in finding.instruction
