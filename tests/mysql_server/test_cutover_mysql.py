"""`unshard compare --repair` and `unshard cutover`, typed as commands, and a validator, between MySQL servers."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from support.task_runs import UNSHARD, TaskFiles, TaskRun
from support.validated_tasks import HeldLooks, ValidationRecords, validated
from unshard.target.validation_errors import ErrorKind, ErrorState
from unshard.testing.mysql_server import Mysql56Server, Mysql80Server, MysqlServer

pytestmark = [pytest.mark.server, pytest.mark.spark]

TABLES = (
    "CREATE TABLE {}.t (id INT PRIMARY KEY, code INT UNIQUE, v VARCHAR(20), d DATETIME NULL, n DECIMAL(9,2))",
    "CREATE TABLE {}.bare (a INT, v VARCHAR(20))",
)


def typed(files: TaskFiles, *words: str) -> subprocess.CompletedProcess[str]:
    sources = [word for path in files.source_paths for word in ("-s", path.name)]
    command = [UNSHARD, words[0], "task.yaml", *sources, *words[1:]]
    options: dict[str, Any] = {"stdin": subprocess.DEVNULL, "capture_output": True, "text": True}
    return subprocess.run(command, cwd=files.folder, timeout=300, check=False, **options)


@pytest.mark.parametrize("source", [Mysql56Server, Mysql80Server, MysqlServer], ids=["5.6", "8.0", "9.7"])
def test_repair_and_cut_over(
    source: type[MysqlServer], mysql_target: MysqlServer, schema: str, tmp_path: Path, spark: SparkSession
) -> None:
    rows = ", ".join(f"({n}, {n}, 'row {n}', '2024-02-29 01:02:03', {n}.25)" for n in range(1, 60))
    with source() as server:
        server.run(
            f"CREATE DATABASE {schema}",
            *(one.format(schema) for one in TABLES),
            f"INSERT INTO {schema}.t VALUES {rows}",
            f"INSERT INTO {schema}.bare VALUES (1, 'x'), (1, 'x'), (2, NULL)",
        )
        files = TaskFiles(tmp_path, f"task_{schema}", {"s1": server}, mysql_target, (schema,)).write()
        with TaskRun(files, spark) as run:
            run.catch_up()
            mysql_target.run(
                f"DELETE FROM {schema}.t WHERE id IN (3, 4)",
                f"INSERT INTO {schema}.t (id, code) VALUES (903, 3)",
                f"UPDATE {schema}.t SET v = NULL, n = -1 WHERE id = 5",
                f"DELETE FROM {schema}.bare WHERE a = 1 LIMIT 1",
            )
            refused = typed(files, "cutover", "--yes", "-q", "--rest", "1")
            assert refused.returncode == 1, refused.stdout + refused.stderr
            assert "NOT done" in refused.stdout, refused.stdout + refused.stderr
            done = typed(files, "compare", "--repair", "--yes", "-q")
            assert done.returncode == 0, done.stdout + done.stderr
            for table in ("t", "bare"):
                query = f"SELECT * FROM {schema}.{table} ORDER BY 1, 2"
                assert mysql_target.query(query) == server.query(query)
            done = typed(files, "cutover", "--read-only", "--json", "--rest", "1")
            assert done.returncode == 0, done.stdout + done.stderr
            assert json.loads(done.stdout)["cut_over"] is True
            assert server.query("SELECT @@global.read_only") == [(1,)]
            done = typed(files, "cutover", "--back")
            assert done.returncode == 0, done.stdout + done.stderr
            assert server.query("SELECT @@global.read_only") == [(0,)]
            server.run(f"INSERT INTO {schema}.t VALUES (1000, 1000, 'later', NULL, NULL)")
            run.catch_up()
    mysql_target.run(f"DROP DATABASE {schema}", f"DROP DATABASE {files.meta}")


def test_rows_of_compressed_transactions_are_validated(
    packing_mysql: MysqlServer, mysql_target: MysqlServer, schema: str, tmp_path: Path, spark: SparkSession
) -> None:
    packing_mysql.run(
        f"CREATE DATABASE {schema}",
        f"CREATE TABLE {schema}.t (id INT PRIMARY KEY, code INT UNIQUE, j JSON, v VARCHAR(20))",
        f"INSERT INTO {schema}.t VALUES (1, 1, '[1]', 'a'), (2, 2, '[2]', 'b'), (3, 3, '[3]', 'c')",
    )
    files = validated(tmp_path, schema, {"s1": packing_mysql}, mysql_target)
    records = ValidationRecords(files)
    run = TaskRun(files, spark)
    held = HeldLooks(run)
    with run:
        run.catch_up()
        records.settled()
        with held:
            packing_mysql.run(
                f"UPDATE {schema}.t SET j = '[4.0, true]' WHERE id < 3", f"DELETE FROM {schema}.t WHERE id = 3"
            )
            run.catch_up()
            mysql_target.run(
                f"UPDATE {schema}.t SET j = '[4.5, true]' WHERE id = 1",
                f"INSERT INTO {schema}.t VALUES (3, 3, '[3]', 'c')",
            )
        found = {one.key: one.kind for one in records.new_errors(2)}
        assert found == {("1",): ErrorKind.CHANGED, ("3",): ErrorKind.EXTRA}
        mysql_target.run(
            f"UPDATE {schema}.t SET j = '[4.0, true]' WHERE id = 1", f"DELETE FROM {schema}.t WHERE id = 3"
        )
        records.new_errors(0)
        assert len(records.errors(ErrorState.RESOLVED)) == 2
    mysql_target.run(f"DROP DATABASE {schema}", f"DROP DATABASE {files.meta}")


def test_an_account_that_may_not_ask_for_prepared_transactions(
    mysql_target: MysqlServer, schema: str, tmp_path: Path, spark: SparkSession
) -> None:
    with Mysql80Server() as server:
        server.run(
            f"CREATE DATABASE {schema}",
            f"CREATE TABLE {schema}.t (id INT PRIMARY KEY)",
            f"INSERT INTO {schema}.t VALUES (1)",
            "CREATE USER few@'%'",
            "GRANT ALL ON *.* TO few@'%'",
            "REVOKE XA_RECOVER_ADMIN ON *.* FROM few@'%'",
        )
        files = TaskFiles(tmp_path, f"task_{schema}", {"s1": server}, mysql_target, (schema,)).write()
        path = tmp_path / "s1.yaml"
        path.write_text(path.read_text().replace("user: root", "user: few"))
        with TaskRun(files, spark) as run:
            run.catch_up()
            done = typed(files, "cutover", "--yes", "-q", "--rest", "1")
            assert done.returncode == 0, done.stdout + done.stderr
            assert "s1: its account may not ask for prepared XA transactions (XA_RECOVER_ADMIN)" in done.stdout
