"""Tables: keys, foreign keys, what the target has already, ghosts, names; each command run and checked again."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace

import pytest

from support.checked_tasks import found, mended, report_of, statement, with_keys
from support.task_runs import TaskFiles
from unshard.model.table import TableName
from unshard.target.filled import FilledTables
from unshard.testing.mariadb_server import MariadbServer

pytestmark = pytest.mark.server
TABLES = "table structure compatibility check"
TRIGGERS = "target trigger checker"
ROWS = "target rows checker"


@pytest.mark.parametrize(
    "columns",
    ["a INT", "a INT, UNIQUE KEY (a)", "n INT AUTO_INCREMENT, KEY (n)", "a TEXT NOT NULL, UNIQUE KEY (a(10))"],
)
def test_no_key(files: TaskFiles, changed_source: MariadbServer, schema: str, columns: str) -> None:
    changed_source.run(f"CREATE TABLE {schema}.k ({columns})")
    mended(files, TABLES, changed_source, "warn", "no primary key")


def test_a_unique_key_will_do_unless_a_primary_key_is_asked_for(
    files: TaskFiles, changed_source: MariadbServer, schema: str
) -> None:
    changed_source.run(f"CREATE TABLE {schema}.k (a INT NOT NULL, UNIQUE KEY (a))")
    assert found(files, TABLES) == []
    (finding,) = found(files, "primary key existence check", ["primary_key"])
    assert finding.severity == "fail"
    changed_source.run(finding.instruction)
    assert found(files, "primary key existence check", ["primary_key"]) == []


def test_foreign_keys(files: TaskFiles, changed_source: MariadbServer, schema: str) -> None:
    changed_source.run(f"CREATE TABLE {schema}.child (id INT PRIMARY KEY, FOREIGN KEY (id) REFERENCES {schema}.t (id))")
    (finding,) = found(files, TABLES)
    assert finding.severity == "warn"
    assert "foreign_key_checks: 1" in finding.instruction
    target = {"host": "127.0.0.1", "port": files.target.port, "user": "root", "session": {"foreign_key_checks": 1}}
    assert found(with_keys(files, target_database=target), TABLES) == []
    changed_source.run(
        f"CREATE TABLE {schema}.cascaded (id INT PRIMARY KEY, FOREIGN KEY (id) REFERENCES {schema}.t (id)"
        " ON DELETE CASCADE)"
    )
    finding = found(files, TABLES)[0]
    assert finding.severity == "fail"
    assert "not in the source's binlog" in finding.short_error
    assert found(with_keys(files, target_database=target), TABLES) == []


@pytest.mark.parametrize(
    ("columns", "words"),
    [
        ("id INT PRIMARY KEY", "missing in the target"),
        ("id INT PRIMARY KEY, v INT", "in the target int"),
        ("id INT PRIMARY KEY, v VARCHAR(20), `x y` INT NOT NULL", "has no default"),
    ],
)
def test_a_target_table_that_does_not_take_the_rows(
    files: TaskFiles, target_server: MariadbServer, schema: str, columns: str, words: str
) -> None:
    target_server.run(f"CREATE DATABASE {schema}", f"CREATE TABLE {schema}.t ({columns})")
    incremental = with_keys(files, task_mode="incremental")
    assert [finding.severity for finding in found(incremental, TABLES)] == ["warn"]
    mended(files, TABLES, target_server, "fail", words)


def test_other_collations(files: TaskFiles, target_server: MariadbServer, schema: str) -> None:
    target_server.run(
        f"CREATE DATABASE {schema}", f"CREATE TABLE {schema}.t (id INT PRIMARY KEY, v VARCHAR(20)) COLLATE latin1_bin"
    )
    mended(files, TABLES, target_server, "warn", "latin1_bin")


def test_other_collations_of_one_column(
    files: TaskFiles, changed_source: MariadbServer, target_server: MariadbServer, schema: str
) -> None:
    form = "CREATE TABLE {}.u (id INT PRIMARY KEY, a VARCHAR(9) COLLATE {} NOT NULL, b TEXT COLLATE utf8mb4_bin)"
    changed_source.run(form.format(schema, "utf8mb4_unicode_ci"))
    target_server.run(f"CREATE DATABASE {schema}", form.format(schema, "utf8mb4_general_ci"))
    mended(files, TABLES, target_server, "warn", "utf8mb4_unicode_ci")


@pytest.mark.parametrize(
    "keys",
    ["PRIMARY KEY (v)", "UNIQUE KEY other (id)", "PRIMARY KEY (id), UNIQUE KEY beyond (v)", "PRIMARY KEY (id, v)"],
)
def test_other_keys(
    files: TaskFiles, changed_source: MariadbServer, target_server: MariadbServer, schema: str, keys: str
) -> None:
    changed_source.run(f"CREATE TABLE {schema}.k (id INT PRIMARY KEY, v VARCHAR(9) NOT NULL, UNIQUE KEY w (v(4), id))")
    target_server.run(f"CREATE DATABASE {schema}")
    target_server.run(f"CREATE TABLE {schema}.k (id INT NOT NULL, v VARCHAR(9) NOT NULL, {keys})")
    mended(files, TABLES, target_server, "warn", "keys of")


def test_equal_tables_have_nothing_to_tell(
    files: TaskFiles, changed_source: MariadbServer, target_server: MariadbServer, schema: str
) -> None:
    create = (
        f"CREATE TABLE {schema}.v (id INT PRIMARY KEY, e ENUM('a', 'b'), n DECIMAL(9, 2), u INT UNSIGNED UNIQUE,"
        " g INT AS (id + 1) STORED) WITH SYSTEM VERSIONING"
    )
    changed_source.run(create)
    target_server.run(f"CREATE DATABASE {schema}", create)
    assert found(files, TABLES) == []


def test_shadow_tables(files: TaskFiles, changed_source: MariadbServer, schema: str) -> None:
    changed_source.run(f"CREATE TABLE {schema}._t_gho (id INT PRIMARY KEY)")
    changed_source.run(f"CREATE TABLE {schema}._t_del (id INT PRIMARY KEY)")
    plain = with_keys(files, online_ddl=False)
    assert [finding.severity for finding in found(plain, "online ddl checker")] == ["warn"]
    mended(files, "online ddl checker", changed_source, "fail", "_t_gho")


def test_shadow_tables_of_a_task_that_goes_on(
    files: TaskFiles, changed_source: MariadbServer, target_server: MariadbServer, schema: str
) -> None:
    changed_source.run(f"CREATE TABLE {schema}._t_gho (id INT PRIMARY KEY)")
    assert [finding.severity for finding in found(files, "online ddl checker")] == ["fail"]
    target_server.run(
        f"CREATE DATABASE {files.meta}",
        f"CREATE TABLE {files.meta}.{files.name}_syncer_checkpoint (id VARCHAR(32))",
        f"INSERT INTO {files.meta}.{files.name}_syncer_checkpoint VALUES ('s1')",
    )
    assert found(files, "online ddl checker") == []


def test_shadow_tables_of_what_the_task_leaves_out(
    files: TaskFiles, changed_source: MariadbServer, schema: str
) -> None:
    changed_source.run(f"CREATE TABLE {schema}._shut_gho (id INT PRIMARY KEY)")
    left = {"own": {"do-dbs": [schema], "ignore-tables": [{"db-name": schema, "tbl-name": "shut"}]}}
    assert found(with_keys(files, block_allow_list=left), "online ddl checker") == []


def test_tables_that_the_dump_alone_takes_are_looked_at(
    files: TaskFiles, changed_source: MariadbServer, schema: str
) -> None:
    changed_source.run(f"CREATE TABLE {schema}.heap (v INT)", f"CREATE TABLE {schema}.other (v INT)")
    own = {"own": {"extra-args": f"-T {schema}.heap"}}
    full = with_keys(files, task_mode="full", mydumpers=own)
    named = replace(full, instance={**full.instance, "mydumper-config-name": "own"}).write()
    assert {finding.self for finding in found(named, TABLES)} == {f"{schema}.heap"}


def test_target_names_that_differ_in_case(files: TaskFiles, changed_source: MariadbServer, schema: str) -> None:
    changed_source.run(f"CREATE TABLE {schema}.T (id INT PRIMARY KEY)")
    (finding,) = found(files, "same table name checker")
    assert finding.severity == "warn"
    with MariadbServer({"lower_case_table_names": "1"}) as folding:
        own = replace(files, target=folding)
        (finding,) = found(own, "same table name checker")
        assert finding.severity == "fail"
        assert "same table name in case-insensitive" in finding.short_error
        route = {"schema-pattern": schema, "table-pattern": "T", "target-schema": schema, "target-table": "other"}
        routed = with_keys(replace(own, instance={"route-rules": ["r"]}), routes={"r": route}, case_sensitive=True)
        assert found(routed, "same table name checker") == []


def test_triggers_of_the_target(
    files: TaskFiles, changed_source: MariadbServer, target_server: MariadbServer, schema: str
) -> None:
    """Those of the source, and those of tables that the task doesn't write, are no matter."""
    tables = [f"CREATE TABLE {schema}.{name} (id INT PRIMARY KEY, v VARCHAR(20))" for name in ("u", "t", "other")]
    changed_source.run(tables[0])
    target_server.run(f"CREATE DATABASE {schema}", *tables)
    triggers = {
        "BEFORE INSERT ON t FOR EACH ROW SET NEW.v = UPPER(NEW.v)": ("fail", "may change each row"),
        "AFTER INSERT ON t FOR EACH ROW INSERT INTO `U` (id) VALUES (NEW.id)": ("fail", f"may write to {schema}.u"),
        "AFTER DELETE ON t FOR EACH ROW call p()": ("fail", "calls a procedure"),
        "AFTER UPDATE ON t FOR EACH ROW REPLACE INTO _t_new (id) VALUES (NEW.id)": ("warn", "runs for each row"),
        "BEFORE DELETE ON t FOR EACH ROW SET @gone = OLD.id": ("warn", "runs for each row"),
    }
    creates = [f"CREATE TRIGGER `tr {number}` {trigger}" for number, trigger in enumerate(triggers)]
    changed_source.run(f"USE {schema}", *creates)
    target_server.run(f"USE {schema}", *creates, "CREATE TRIGGER c AFTER INSERT ON other FOR EACH ROW SET @n = 1")
    findings = found(files, TRIGGERS)
    assert [finding.severity for finding in findings] == [severity for severity, _ in triggers.values()]
    for finding, (_, words) in zip(findings, triggers.values(), strict=True):
        assert words in finding.short_error
    at_least_once = found(with_keys(files, delivery="at-least-once"), TRIGGERS)
    assert [finding.severity for finding in at_least_once] == ["warn"] * len(triggers)
    left_out = with_keys(files, ignore_checking_items=["target_triggers"])
    assert TRIGGERS not in {result.name for result in report_of(left_out).results}
    target_server.run(*(statement(finding) for finding in findings))
    assert found(files, TRIGGERS) == []


def test_a_generated_column_over_one_that_a_mapping_writes(
    files: TaskFiles, changed_source: MariadbServer, schema: str
) -> None:
    changed_source.run(
        f"CREATE TABLE {schema}.g (id INT PRIMARY KEY, code VARCHAR(8), kind VARCHAR(8),"
        " low VARCHAR(8) AS (LOWER(code)) STORED, own VARCHAR(8) AS (LOWER(kind)), size INT AS (CHAR_LENGTH(low)))"
    )
    assert found(files, TABLES) == []
    mapping = {
        "schema-pattern": schema, "table-pattern": "g", "source-column": "code", "target-column": "code",
        "expression": "add prefix", "arguments": ["n-"],
    }  # fmt: skip
    mapped = replace(with_keys(files, column_mappings={"m": mapping}), instance={"column-mapping-rules": ["m"]})
    (finding,) = found(mapped, TABLES)
    assert finding.severity == "warn"
    assert "low, size" in finding.short_error
    assert "column mapping m writes code" in finding.short_error


def test_an_error_on_the_way_is_a_failure_of_that_check(
    files: TaskFiles, changed_source: MariadbServer, schema: str
) -> None:
    changed_source.run(f"CREATE TABLE {schema}.t_1 (id BIGINT AUTO_INCREMENT PRIMARY KEY)")
    changed_source.run(f"CREATE TABLE {schema}.t_x (id BIGINT AUTO_INCREMENT PRIMARY KEY)")
    mapping = {
        "schema-pattern": schema, "table-pattern": "t_*", "source-column": "id", "target-column": "id",
        "expression": "partition id", "arguments": ["1", "", "t_"],
    }  # fmt: skip
    route = {"schema-pattern": schema, "table-pattern": "t_*", "target-schema": schema, "target-table": "t_all"}
    own = with_keys(files, routes={"r": route}, column_mappings={"m": mapping})
    own = replace(own, instance={"route-rules": ["r"], "column-mapping-rules": ["m"]})
    (finding,) = found(own, "auto-increment key checking")
    assert finding.severity == "fail"
    assert finding.short_error.startswith("CONFIG-007")
    assert not report_of(own).passed


def test_rows_that_the_load_would_refuse_are_told_before_the_dump(
    files: TaskFiles, changed_source: MariadbServer, schema: str
) -> None:
    files.target.run(f"CREATE DATABASE {schema}", f"CREATE TABLE {schema}.t (id INT PRIMARY KEY, v VARCHAR(20))")
    assert found(files, ROWS) == []
    files.target.run(f"INSERT INTO {schema}.t VALUES (1, 'of others')")
    (finding,) = found(files, ROWS)
    assert finding.severity == "fail"
    assert "LOAD-026" in finding.short_error
    assert "1 row" in finding.short_error
    assert "incremental-import" in finding.instruction
    merging = {"own": {"dir": str(files.folder / "dump"), "incremental-import": True}}
    assert found(with_keys(files, loaders=merging), ROWS) == []
    records = FilledTables(files.meta, files.name)
    files.target.run(f"CREATE DATABASE {files.meta}")
    with closing(files.target.connection()) as connection:
        records.create(connection)
        records.claim(connection, "s1", [TableName(schema, "t")], merges=True)
        assert found(files, ROWS) == []
        records.note_earlier(connection)
    (finding,) = found(files, ROWS)
    assert "LOAD-025" in finding.short_error
    assert "--reset" in finding.instruction


def test_partitions_that_differ_at_the_two_ends(
    files: TaskFiles, changed_source: MariadbServer, target_server: MariadbServer, schema: str
) -> None:
    """Tables that the target lacks get the source's partitions."""
    by = "(id INT PRIMARY KEY) PARTITION BY RANGE (id) (PARTITION p0 VALUES LESS THAN ({}))"
    changed_source.run(*(f"CREATE TABLE {schema}.{name} {by.format(5)}" for name in ("p", "q", "r")))
    target_server.run(f"CREATE DATABASE IF NOT EXISTS {schema}")
    target_server.run(f"CREATE TABLE {schema}.p {by.format(8)}", f"CREATE TABLE {schema}.q {by.format(5)}")
    (finding,) = found(files, TABLES)
    assert (finding.severity, finding.self) == ("warn", f"{schema}.p")
    assert "the partitions differ from one on: on the source p0 LESS 5, on the target p0 LESS 8" in finding.short_error
    assert found(replace(files, keys={**files.keys, "task-mode": "full"}), TABLES) == []
