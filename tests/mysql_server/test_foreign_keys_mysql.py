"""Foreign keys with a real MySQL: as a target it does what they say, as a source it logs what they did."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.checked_tasks import found, with_keys
from support.foreign_keys import carry_families
from support.log_to_target import Way
from support.task_runs import TaskFiles
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.mysql_server import MysqlServer

pytestmark = pytest.mark.server
WAYS = (Way(budget=20000), Way(multiple_rows=False, compact=False))
TABLES = "table structure compatibility check"


def test_cascades_of_a_mariadb_are_done_by_a_mysql(
    source_server: MariadbServer, mysql_target: MysqlServer, schema: str
) -> None:
    carry_families(source_server, mysql_target, schema, WAYS, foreign_keys=True)


def test_cascades_that_a_mysql_has_logged_are_not_done_again(
    mysql_source: MysqlServer, mysql_target: MysqlServer, schema: str, tmp_path: Path
) -> None:
    files = TaskFiles(tmp_path, schema, {"s1": mysql_source}, mysql_target, (schema,))
    carry_families(mysql_source, mysql_target, schema, WAYS, foreign_keys=False)
    mysql_target.run(f"DROP DATABASE {schema}")
    assert [one for one in found(files, TABLES) if one.severity == "fail"] == []
    target = {"host": "127.0.0.1", "port": mysql_target.port, "user": "root", "session": {"foreign_key_checks": 1}}
    finding = next(one for one in found(with_keys(files, target_database=target), TABLES) if one.severity == "fail")
    assert "would do it again" in finding.short_error
