"""Throwaway servers that are not installed on this machine: a real MySQL, and another MariaDB than Debian's.

Their programs are in trees of unpacked packages (`testing.server_trees`). The servers of unsupported releases are
below.
"""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import ClassVar

from unshard.testing.mariadb_server import MariadbServer
from unshard.testing.programs import program_version
from unshard.testing.server_trees import server_tree, unpacked
from unshard.testing.throwaway_server import LoggingServer, ServerBootError, as_user, template


def mysqlbinlog() -> list[str]:
    """Return the command of MySQL's own `mysqlbinlog`; arguments may follow."""
    return unpacked(server_tree("mysql"), "mysqlbinlog")


class MysqlServer(LoggingServer):
    """A throwaway MySQL server. Boots in a second.

    GTIDs are on, as in production; `binlog_row_metadata` is the server's default.
    """

    product = "MySQL"
    position_query = "SHOW BINARY LOG STATUS"
    defaults: ClassVar[Mapping[str, str]] = {
        "log_bin": "mysql-bin",
        "binlog_format": "ROW",
        "gtid_mode": "ON",
        "enforce_gtid_consistency": "ON",
        "sync_binlog": "0",
        "innodb_buffer_pool_size": "64M",
        "innodb_redo_log_capacity": "16M",
        "innodb_flush_log_at_trx_commit": "2",  # a killed process loses nothing of it; only a power cut would
        "max_connections": "200",
        "max_allowed_packet": "64M",
        "mysqlx": "OFF",
        "secure_file_priv": "NULL",
    }

    def _command(self) -> list[str]:
        tree = server_tree("mysql")
        return [*unpacked(tree, "mysqld"), "--no-defaults", f"--basedir={tree / 'usr'}"]

    def binlog_program(self) -> list[str]:
        """As `ThrowawayServer.binlog_program`."""
        return mysqlbinlog()

    def _template(self) -> Path:
        command = self._command()
        made_of = [_INITIALIZE_OPTIONS, _INITIAL_USERS]
        return template(f"mysql-{program_version(command[:4])}", made_of, lambda fresh: initialize(command, fresh))


class OtherMariadbServer(MariadbServer):
    """A throwaway MariaDB server of the tree `mariadb`, newer than the installed one."""

    def _command(self) -> list[str]:
        tree = server_tree("mariadb")
        return [*unpacked(tree, "mariadbd"), "--no-defaults", f"--basedir={tree / 'usr'}"]

    def binlog_program(self) -> list[str]:
        """As `ThrowawayServer.binlog_program`."""
        return unpacked(server_tree("mariadb"), "mariadb-binlog")

    def _template(self) -> Path:
        command = self._command()
        share = server_tree("mariadb") / "usr/share/mariadb"
        kinds = ("system_tables", "performance_tables", "system_tables_data")
        root = "REPLACE INTO global_priv VALUES ('127.0.0.1', 'root', '{\"access\": 18446744073709551615}');"
        return bootstrapped("mariadb", command, [share / f"mariadb_{kind}.sql" for kind in kinds], root)


_INITIALIZE_OPTIONS = ("--initialize-insecure", "--secure-file-priv=NULL", "--innodb-redo-log-capacity=16M")
_INITIAL_USERS = "CREATE USER root@'127.0.0.1';\nGRANT ALL ON *.* TO root@'127.0.0.1' WITH GRANT OPTION;\n"


def initialize(command: list[str], fresh: Path) -> None:
    """Fill an empty data folder; root has no password, at 127.0.0.1 too. Raises ServerBootError."""
    with tempfile.NamedTemporaryFile("w", suffix=".sql") as users:
        users.write(_INITIAL_USERS)
        users.flush()
        _made([*command, *_INITIALIZE_OPTIONS, f"--datadir={fresh}", f"--init-file={users.name}", *as_user()])
    (fresh / "auto.cnf").unlink(missing_ok=True)  # each server gets a UUID of its own


def bootstrapped(name: str, command: list[str], files: Iterable[Path], statement: str, log_size: str = "16M") -> Path:
    """Return the data folder in the cache that is filled by SQL files and a statement, run in the schema `mysql`.

    This is what `mariadb-install-db` does. Raises ServerBootError.
    """
    sql = "\n".join(["USE mysql;", *(file.read_text() for file in files), statement, ""])
    options = ["--bootstrap", f"--innodb-log-file-size={log_size}", "--skip-name-resolve"]

    def fill(fresh: Path) -> None:
        (fresh / "mysql").mkdir()
        _made([*command, *options, f"--datadir={fresh}", *as_user()], sql)

    return template(f"{name}-{program_version(command[:4])}", [options, sql], fill)


def _made(command: list[str], text: str = "") -> None:
    with tempfile.TemporaryDirectory(prefix="unshard-template-") as temporary:  # as `mariadb_server` does
        env = {**os.environ, "TMPDIR": temporary}
        made = subprocess.run(command, input=text, env=env, capture_output=True, text=True, check=False)
    if made.returncode != 0:
        raise ServerBootError(f"{command[3]} made no data folder:\n{made.stdout[-2000:]}{made.stderr[-2000:]}")


# Throwaway servers of unsupported releases, which are still in use as sources: MySQL 5.6 and 8.0, MariaDB 10.2.
#
# `tools/test-servers` fetches them like those above. There is no package of MySQL 5.7.


_LOG_SIZE = "112M"
"""MySQL 5.6 refuses a BLOB that is larger than a tenth of its two logs."""


class Mysql80Server(MysqlServer):
    """A throwaway MySQL 8.0 server. Its `binlog_row_metadata` is MINIMAL.

    Its tree has no `mysqlbinlog`; that of MySQL 9.7 reads its log.
    """

    position_query = "SHOW MASTER STATUS"

    def binlog_program(self) -> list[str]:
        """As `ThrowawayServer.binlog_program`."""
        return mysqlbinlog()

    def _command(self) -> list[str]:
        tree = server_tree("mysql-8.0")
        return [*unpacked(tree, "mysqld"), "--no-defaults", f"--basedir={tree / 'usr'}"]


class Mysql56Server(MysqlServer):
    """A throwaway MySQL 5.6 server with GTIDs, which need `log_slave_updates` there.

    Its row metadata contain only types.
    """

    position_query = "SHOW MASTER STATUS"
    has_json = False
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
        return _bootstrapped_older("mysql", self._command(), _LOG_SIZE)


class OldMariadbServer(MariadbServer):
    """A throwaway MariaDB 10.2 server."""

    def _command(self) -> list[str]:
        return _without_plugins("mariadb-10.2")

    def _template(self) -> Path:
        return _bootstrapped_older("mariadb", self._command(), "16M")


def _without_plugins(name: str) -> list[str]:
    tree = server_tree(name)
    share = tree / "usr/share"
    return [*unpacked(tree, "mysqld"), "--no-defaults", f"--basedir={tree / 'usr'}", f"--lc-messages-dir={share}"]


def _bootstrapped_older(name: str, command: list[str], log_size: str) -> Path:
    share = Path(command[-1].partition("=")[2])
    files = [share / f"mysql_{kind}.sql" for kind in ("system_tables", "system_tables_data")]
    return bootstrapped(name, command, files, "DELETE FROM user WHERE User = '';", log_size)
