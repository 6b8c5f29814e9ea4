"""A task with the accounts of the tutorial and no more: copy, changes, statements, a stop."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from pathlib import Path

from support.waiting import wait_until
from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.throwaway_server import ThrowawayServer

TUTORIAL = Path(__file__).parents[2] / "docs" / "tutorial" / "first-migration.md"
STATEMENTS = (
    "INSERT INTO {0}.orders_1 VALUES (2, 'new')",
    "UPDATE {0}.orders_1 SET state = 'paid' WHERE id = 1",
    "DELETE FROM {0}.orders_1 WHERE id = 2",
    "ALTER TABLE {0}.orders_1 ADD COLUMN amount INT DEFAULT 3",
    "CREATE INDEX by_state ON {0}.orders_1 (state)",
    "CREATE TABLE {0}.items (id INT AUTO_INCREMENT PRIMARY KEY, n INT)",
    "INSERT INTO {0}.items VALUES (1, 1)",
    "TRUNCATE TABLE {0}.items",
    "RENAME TABLE {0}.items TO {0}.things",
    "DROP TABLE {0}.things",
)


def grants(account: str) -> list[str]:
    """The tutorial's statements about an account."""
    statements = re.findall(rf"^(?:CREATE USER|GRANT) .*'{account}'@.*;$", TUTORIAL.read_text(), re.MULTILINE)
    assert len(statements) == 3, statements
    return statements


def copied_and_followed(target: ThrowawayServer, tmp_path: Path) -> None:
    """A task with the tutorial's accounts and all that it may meet: copy, changes, statements, a stop."""
    with MariadbServer() as source:
        source.run("CREATE DATABASE shop_1", "CREATE TABLE shop_1.orders_1 (id INT PRIMARY KEY, state VARCHAR(20))")
        source.run("INSERT INTO shop_1.orders_1 VALUES (1, 'new')", *grants("replicator"))
        target.run(*grants("unshard"))
        login = {
            "replicator": f"{{host: 127.0.0.1, port: {source.port}, user: replicator, password: secret-of-source}}",
            "unshard": f"{{host: 127.0.0.1, port: {target.port}, user: unshard, password: secret-of-target}}",
        }
        (tmp_path / "source.yaml").write_text(f"source-id: s\nrelay-dir: relay\nfrom: {login['replicator']}\n")
        (tmp_path / "task.yaml").write_text(
            f"name: shop\ntask-mode: all\ntarget-database: {login['unshard']}\n"
            "mysql-instances: [{source-id: s, route-rules: [orders, rest], block-allow-list: shop,"
            " syncer: {checkpoint-flush-interval: 1}}]\n"
            'block-allow-list: {shop: {do-dbs: ["shop_*"]}}\n'
            'routes:\n  orders: {schema-pattern: "shop_*", table-pattern: "orders_*", target-schema: shop,'
            ' target-table: orders}\n  rest: {schema-pattern: "shop_*", target-schema: shop}\n'
        )
        command = [sys.executable, "-m", "unshard", "run", "task.yaml", "-s", "source.yaml"]
        with (tmp_path / "output.txt").open("w") as output:
            child = subprocess.Popen(command, cwd=tmp_path, stdout=output, stderr=output)
        try:
            source.run(*(statement.format("shop_1") for statement in STATEMENTS))
            ((file, offset, *_),) = source.query("SHOW MASTER STATUS")

            def said() -> str:
                return (tmp_path / "output.txt").read_text()

            def caught_up() -> bool:
                assert child.poll() is None, said()
                return (checkpoint(target) or ("", 0)) >= (file, int(offset))

            wait_until(caught_up, "it has caught up", 900, said)
            child.send_signal(signal.SIGINT)
            assert child.wait(90) == 0
        finally:
            child.kill()
            child.wait()
        assert target.query("SELECT * FROM shop.orders") == [(1, "paid", 3)]
        schemas = {name for (name,) in target.query("SHOW DATABASES")}
        assert {name for name in schemas if name.startswith("dm_meta")} == {"dm_meta"}


def checkpoint(target: ThrowawayServer) -> tuple[str, int] | None:
    """Where the task's checkpoint stands, None before the first."""
    table = "SELECT 1 FROM information_schema.TABLES WHERE TABLE_NAME = 'shop_syncer_checkpoint'"
    if not target.query(table):
        return None
    found = target.query("SELECT binlog_name, binlog_pos FROM dm_meta.shop_syncer_checkpoint WHERE is_global")
    return (found[0][0], int(found[0][1])) if found else None
