"""What the checks say of a TiDB target before anything is written."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from support.checked_tasks import as_user, found, mended, report_of, with_keys
from support.task_runs import TaskFiles
from support.vanishing_tables import Vanishing
from unshard.checks.result import Finding
from unshard.mysql import structure
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.tidb_server import TidbServer

pytestmark = pytest.mark.server
VERSION, COLLATION = "target db version checker", "target db collation checker"
PRIVILEGES, WRITABLE = "target db privilege checker", "target db writable checker"
TABLES, COLLATIONS = "table structure checker for TiDB", "collation checker for TiDB"
SWEDISH = "CHARACTER SET latin1 COLLATE latin1_swedish_ci"


@pytest.fixture
def files(source_server: MariadbServer, tidb: TidbServer, schema: str, tmp_path: Path) -> TaskFiles:
    """A task over one schema with one sound table."""
    source_server.run(f"CREATE DATABASE {schema} {SWEDISH}", f"CREATE TABLE {schema}.sound (id INT PRIMARY KEY)")
    return TaskFiles(tmp_path, schema, {"s1": source_server}, tidb, (schema,))


def shown(findings: list[Finding]) -> list[tuple[str, str]]:
    return [(finding.severity, finding.short_error) for finding in findings]


def test_a_sound_task_passes_with_nothing_to_tell(files: TaskFiles) -> None:
    report = report_of(files)
    assert report.passed
    assert [result.name for result in report.results if result.errors] == []


def test_a_server_that_is_too_old(files: TaskFiles) -> None:
    with TidbServer({"server-version": '"5.7.25-TiDB-v6.1.7"'}) as old:
        (fault,) = found(replace(files, target=old), VERSION)
    assert (fault.severity, fault.short_error) == (
        "fail",
        "the target is TiDB 6.1.7, which does not take the statements of a task: 6.5.0 is the oldest",
    )


def test_a_cluster_that_compares_bytes(files: TaskFiles, source_server: MariadbServer, schema: str) -> None:
    source_server.run(f"CREATE TABLE {schema}.t (id INT PRIMARY KEY, v VARCHAR(9) CHARACTER SET utf8mb4, UNIQUE (v))")
    with TidbServer({"new_collations_enabled_on_first_bootstrap": "false"}) as binary:
        own = replace(files, target=binary)
        (fault,) = found(own, COLLATION)
        (other,) = found(own, COLLATIONS)
        assert report_of(own).passed
    assert fault.severity == "warn"
    assert "new_collations_enabled_on_first_bootstrap = false" in fault.short_error
    assert "utf8mb4_general_ci becomes utf8mb4_bin" in other.short_error
    assert "A = À" in other.short_error


@pytest.mark.parametrize(
    ("column", "fault"),
    [
        ("g GEOMETRY", "column g: TiDB has no type GEOMETRY"),
        ("p POINT NOT NULL", "column p: TiDB has no type POINT"),
        ("v VARCHAR(1000), UNIQUE KEY uv (v, id)", "UNIQUE KEY uv has more than the 3072 bytes"),
    ],
)
def test_what_tidb_can_not_have_is_told_by_table_and_column(
    files: TaskFiles, source_server: MariadbServer, schema: str, column: str, fault: str
) -> None:
    source_server.run(f"CREATE TABLE {schema}.t (id INT PRIMARY KEY, {column}) CHARACTER SET utf8mb4")
    (told,) = found(files, TABLES)
    assert told.severity == "fail"
    assert told.short_error.startswith(f"table {schema}.t: ")
    assert fault in told.short_error
    assert "ignore-tables" in told.instruction
    rule = {"do-dbs": [schema], "ignore-tables": [{"db-name": schema, "tbl-name": "t"}]}
    assert found(with_keys(files, block_allow_list={"own": rule}), TABLES) == []


def test_what_becomes_text_is_told(files: TaskFiles, source_server: MariadbServer, schema: str) -> None:
    source_server.run(f"CREATE TABLE {schema}.t (u UUID PRIMARY KEY, i INET4)")
    told = found(files, TABLES)
    assert {one.severity for one in told} == {"warn"}
    assert [one.short_error for one in told] == [
        f"table {schema}.t: column u: TiDB has no type UUID, so it becomes CHAR(36)",
        f"table {schema}.t: column i: TiDB has no type INET4, so it becomes VARCHAR(15)",
    ]


def test_what_is_left_out_is_told_once_for_shards(files: TaskFiles, source_server: MariadbServer, schema: str) -> None:
    for number in (1, 2):
        source_server.run(
            f"CREATE TABLE {schema}.t{number} (id INT PRIMARY KEY, v TEXT, FULLTEXT KEY ft (v)) WITH SYSTEM VERSIONING"
        )
    route = {"schema-pattern": schema, "table-pattern": "t?", "target-schema": schema, "target-table": "t"}
    own = replace(with_keys(files, routes={"r": route}), instance={"route-rules": ["r"]})
    (told,) = found(own, TABLES)
    assert told.severity == "warn"
    assert told.short_error == (
        f"table {schema}.t1, {schema}.t2: it is created without system versioning, FULLTEXT KEY ft, which TiDB has not"
    )


def test_collations_that_tidb_lacks(files: TaskFiles, source_server: MariadbServer, schema: str) -> None:
    """By columns, those of unique keys first; with what becomes equal; the task file says otherwise."""
    source_server.run(
        f"CREATE TABLE {schema}.t (id INT PRIMARY KEY, v VARCHAR(9) UNIQUE, w VARCHAR(9),"
        " j VARCHAR(9) CHARACTER SET sjis, u VARCHAR(9) CHARACTER SET utf8mb3 COLLATE utf8mb3_general_ci,"
        " b VARCHAR(9) CHARACTER SET latin1 COLLATE latin1_bin)"
    )
    swedish, japanese = found(files, COLLATIONS)
    assert {japanese.severity, swedish.severity} == {"warn"}
    assert "sjis_japanese_ci becomes utf8mb4_general_ci" in japanese.short_error
    assert (
        "latin1_swedish_ci becomes utf8mb4_general_ci, as TiDB has no such collation: equal there and not in the "
        "source are A = Ä = Å" in swedish.short_error
    )
    assert f"Columns: in unique keys {schema}.t.v; besides {schema}.t.w" in swedish.short_error
    assert "`collations: {latin1_swedish_ci: …}`" in swedish.instruction
    wished = {"latin1_swedish_ci": "utf8mb4_bin", "sjis_japanese_ci": "utf8mb4_unicode_ci"}
    (told,) = found(with_keys(files, collations=wished), COLLATIONS)
    assert "sjis_japanese_ci becomes utf8mb4_unicode_ci, as `collations` says" in told.short_error
    fault, _ = found(with_keys(files, collations={"latin1_swedish_ci": "utf8mb4_swedish_ci"}), COLLATIONS)
    assert shown([fault]) == [
        ("fail", "the target has no collation utf8mb4_swedish_ci, which the task file names for latin1_swedish_ci")
    ]


def test_columns_that_are_there_are_told_as_they_are(
    files: TaskFiles, source_server: MariadbServer, tidb: TidbServer, schema: str
) -> None:
    source_server.run(f"CREATE TABLE {schema}.t (id INT PRIMARY KEY, v VARCHAR(9) UNIQUE)")
    tidb.run(
        f"CREATE DATABASE {schema}", f"CREATE TABLE {schema}.t (id INT PRIMARY KEY, v VARCHAR(9) COLLATE utf8mb4_bin)"
    )
    (told,) = found(files, COLLATIONS)
    assert "latin1_swedish_ci becomes utf8mb4_bin" in told.short_error
    assert "equal in the source and not there are A = À" in told.short_error


def test_an_enum_that_is_there_fits(
    files: TaskFiles, source_server: MariadbServer, tidb: TidbServer, schema: str
) -> None:
    """TiDB writes a backslash of a member as it is, and doubles quotes."""
    table = (
        "CREATE TABLE {}.t (id INT PRIMARY KEY, e ENUM('back\\\\slash', 'it''s', ',', 'end\\\\'), s SET('a\\\\', 'b'))"
    )
    tidb.run(f"CREATE DATABASE {schema}", table.format(schema))
    source_server.run(table.format(schema))
    assert [one for one in found(files, "table structure compatibility check") if one.severity == "fail"] == []


@pytest.fixture
def limited(tidb: TidbServer) -> Iterator[None]:
    yield
    tidb.run("DROP USER IF EXISTS few@`127.0.0.1`")


@pytest.mark.usefixtures("limited")
def test_an_account_without_privileges(files: TaskFiles, tidb: TidbServer, schema: str) -> None:
    login = as_user(tidb, "few", "USAGE ON *.*")
    lacks = mended(with_keys(files, target_database=login), PRIVILEGES, tidb, "fail", "few")
    assert len(lacks) == 2


@pytest.mark.usefixtures("limited")
def test_privileges_by_a_role(files: TaskFiles, tidb: TidbServer) -> None:
    login = as_user(tidb, "few", "USAGE ON *.*")
    tidb.run(
        "CREATE ROLE IF NOT EXISTS everything", "GRANT ALL ON *.* TO everything", "GRANT everything TO few@`127.0.0.1`"
    )
    own = with_keys(files, target_database=login)
    assert {finding.severity for finding in found(own, PRIVILEGES)} == {"fail"}
    tidb.run("SET DEFAULT ROLE everything TO few@`127.0.0.1`")
    assert found(own, PRIVILEGES) == []


def test_a_server_that_checks_no_privileges(files: TaskFiles) -> None:
    with TidbServer({"security.skip-grant-table": "true"}) as open_to_all:
        assert found(replace(files, target=open_to_all), PRIVILEGES) == []


def test_a_read_only_cluster(files: TaskFiles) -> None:
    """Nobody writes but accounts that were given a privilege by its name."""
    with TidbServer() as server:
        own = replace(files, target=server)
        for variables in (("tidb_super_read_only",), ("tidb_restricted_read_only",)):
            server.run(*(f"SET GLOBAL {name} = ON" for name in variables))
            (command,) = mended(own, WRITABLE, server, "fail", variables[0])
            assert command.startswith("SET GLOBAL")
            server.run(f"CREATE DATABASE {variables[0]}")
        login = as_user(server, "writer", "ALL ON *.*", "RESTRICTED_REPLICA_WRITER_ADMIN ON *.*")
        server.run("SET GLOBAL tidb_restricted_read_only = ON")
        assert found(with_keys(own, target_database=login), WRITABLE) == []


@pytest.mark.parametrize("change", ["DROP TABLE {0}.t", "RENAME TABLE {0}.t TO {0}.away"])
def test_a_table_that_goes_while_it_is_looked_at(
    change: str, files: TaskFiles, source_server: MariadbServer, schema: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    source_server.run(f"CREATE TABLE {schema}.t (id INT PRIMARY KEY, p POINT)")
    words, act = f"SHOW CREATE TABLE `{schema}`.`t`", partial(source_server.run, change.format(schema))
    gone = Vanishing(words, act).before(monkeypatch, structure, "rows")
    assert report_of(files).passed
    assert gone.done


@pytest.mark.parametrize(
    ("column", "keys", "severity"),
    [
        ("v VARCHAR(9) {0} UNIQUE", {"syncers": {"own": {"safe-mode": True}}}, "fail"),
        ("v VARCHAR(9) {0} UNIQUE", {"delivery": "at-least-once"}, "fail"),
        ("v VARCHAR(9) {0} UNIQUE", {}, "warn"),
        ("v VARCHAR(9) {0}", {"delivery": "at-least-once"}, "warn"),
    ],
)
def test_a_collation_that_takes_more_texts_for_equal_and_safe_mode(
    column: str, keys: dict[str, object], severity: str, files: TaskFiles, source_server: MariadbServer, schema: str
) -> None:
    """REPLACE would remove one of two rows."""
    source_server.run(f"CREATE TABLE {schema}.t (id INT PRIMARY KEY, {column.format(SWEDISH)})")
    (finding,) = found(with_keys(files, **keys), COLLATIONS)
    assert finding.severity == severity
    assert ("keeps only the last of rows" in finding.short_error) == (severity == "fail")


def test_partitions_that_tidb_makes_otherwise(files: TaskFiles, source_server: MariadbServer, schema: str) -> None:
    by = {
        "ranges": "a INT) PARTITION BY RANGE (a) (PARTITION p VALUES LESS THAN (5))",
        "filled": "a INT NOT NULL) PARTITION BY HASH (a) PARTITIONS 2",
        "nulls": "a INT) PARTITION BY HASH (a) PARTITIONS 2",
        "keyed": "a INT) PARTITION BY KEY (a) PARTITIONS 2",
        "subs": "a INT) PARTITION BY RANGE (a) SUBPARTITION BY HASH (a) (PARTITION p VALUES LESS THAN (5))",
    }
    source_server.run(*(f"CREATE TABLE {schema}.{name} (id INT, {sql}" for name, sql in by.items()))
    told = [one for one in found(files, "table structure compatibility check") if "partition" in one.short_error]
    assert {one.self for one in told} == {f"{schema}.{name}" for name in ("nulls", "keyed", "subs")}
    assert {one.severity for one in told} == {"warn"}
