"""Throwaway servers of releases that are out of support, which sources still are: MySQL 5.6 and 8.0, MariaDB 10.2.

`tools/test-servers` fetches them, as those of `mysql_server`. A MySQL 5.7 can't be had as a package.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from unshard.testing.mysql_server import (
    MysqlServer,
    run_bootstrap,
    server_tree,
    unpacked,
    version_of,
)
from unshard.testing.servers import MariadbServer
from unshard.testing.throwaway import made_once

_LOG_SIZE = "112M"
"""MySQL 5.6 takes no BLOB of more than a tenth of its two logs."""


class Mysql80Server(MysqlServer):
    """A MySQL 8.0. Its `binlog_row_metadata` is MINIMAL."""

    position_query = "SHOW MASTER STATUS"

    def _command(self) -> list[str]:
        tree = server_tree("mysql-8.0")
        return [*unpacked(tree, "mysqld"), "--no-defaults", f"--basedir={tree / 'usr'}"]


class Mysql56Server(MysqlServer):
    """A MySQL 5.6 with GTIDs, which needs `log_slave_updates` there. Its rows' metadata are types alone."""

    position_query = "SHOW MASTER STATUS"
    defaults: ClassVar[Mapping[str, str]] = {
        "log_bin": "mysql-bin",
        "binlog_format": "ROW",
        "gtid_mode": "ON",
        "enforce_gtid_consistency": "ON",
        "log_slave_updates": "ON",
        "sync_binlog": "0",
        "character_set_server": "utf8mb4",
        "innodb_buffer_pool_size": "64M",
        "innodb_log_file_size": _LOG_SIZE,
        "innodb_flush_log_at_trx_commit": "2",  # a killed process loses nothing of it; only a power cut would
        "max_connections": "200",
        "max_allowed_packet": "64M",
        "secure_file_priv": "",
    }

    def _command(self) -> list[str]:
        return _without_plugins("mysql-5.6")

    def _template(self) -> Path:
        command = self._command()
        return made_once(f"mysql-{version_of(command)}", lambda fresh: _bootstrap(command, fresh, _LOG_SIZE))


class OldMariadbServer(MariadbServer):
    """A MariaDB 10.2."""

    def _command(self) -> list[str]:
        return _without_plugins("mariadb-10.2")

    def _template(self) -> Path:
        command = self._command()
        return made_once(f"mariadb-{version_of(command)}", lambda fresh: _bootstrap(command, fresh, "16M"))


def _without_plugins(name: str) -> list[str]:
    tree = server_tree(name)
    share = tree / "usr/share"
    return [*unpacked(tree, "mysqld"), "--no-defaults", f"--basedir={tree / 'usr'}", f"--lc-messages-dir={share}"]


def _bootstrap(command: list[str], fresh: Path, log_size: str) -> None:
    """Fill an empty data folder from the SQL files of the tree. Raises ServerBootError."""
    share = Path(command[-1].partition("=")[2])
    names = ("mysql_system_tables.sql", "mysql_system_tables_data.sql")
    root = "DELETE FROM user WHERE User = '';"
    run_bootstrap(command, fresh, [*((share / name).read_text() for name in names), root], log_size)
