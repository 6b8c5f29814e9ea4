"""`unshard compare` repairs rows of a TiDB that hold each other's values of a unique key."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.comparisons import compared, in_this_process, not_followed, repaired, run_file
from unshard.cli.compare_subject import CompareWish
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.tidb_server import TidbServer

pytestmark = pytest.mark.server

COLUMNS = "(id INT PRIMARY KEY, u VARCHAR(20) COLLATE utf8mb4_general_ci NOT NULL UNIQUE, n DECIMAL(9,2) UNIQUE)"
ROWS = "INSERT INTO t (id, u, n) VALUES (1, 'a', 1), (2, 'ä-b', 2), (3, 'c', 3), (4, 'd', 4), (5, 'e', 5)"
WRONG = "INSERT INTO t (id, u, n) VALUES (1, 'Ä-B', 2), (2, 'A', 1), (3, 'x', 4), (4, 'c', 5)"


@pytest.mark.parametrize("way", ["command", "file"])
def test_the_target_is_equal_afterwards(
    way: str,
    source_server: MariadbServer,
    tidb: TidbServer,
    schema: str,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    in_this_process(monkeypatch)
    with not_followed(source_server, tidb, schema, tmp_path) as files:
        for server, own, written in ((source_server, "", ROWS), (tidb, ", own INT DEFAULT 7", WRONG)):
            server.run("SET NAMES utf8mb4", f"USE {schema}", f"CREATE TABLE t {COLUMNS[:-1]}{own})", written)
        tidb.run(f"UPDATE {schema}.t SET own = id")
        if way == "file":
            path = tmp_path / "mend.sql"
            compared(files, None, CompareWish(sql=path))
            run_file(tidb, path)
            after = compared(files, None)
        else:
            after = repaired(files, compared(files, None))
        assert after.exit_code == 0, after.notes
        asked = f"SELECT id, u, n FROM {schema}.t ORDER BY id"
        assert tidb.query(asked) == source_server.query(asked)
        assert tidb.query(f"SELECT own FROM {schema}.t ORDER BY id") == [(1,), (2,), (3,), (4,), (7,)]
