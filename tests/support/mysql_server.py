"""Throwaway servers that are not installed on this machine: a real MySQL, and another MariaDB than Debian's.

They run from a folder tree into which packages were unpacked (`tools/test-servers`). The programs use the libraries of
that tree, through its own loader if it has one, so they need neither an installation nor a chroot. The servers of
unsupported releases are below.
"""

from __future__ import annotations

import os
import re
import subprocess
import tempfile
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import ClassVar

from unshard.testing.servers import (
    LoggingServer,
    MariadbServer,
    MissingProgramError,
    ServerBootError,
    as_user,
    made_once,
)

_CHECKOUT = Path(__file__).parents[2]
_LOADER = Path("/lib64/ld-linux-x86-64.so.2")


def server_tree(name: str) -> Path:
    """Return the tree of unpacked packages called `mysql`, `mariadb`, `mysql-5.6` and so on.

    It is `.servers/<name>` in the checkout, or the folder in the environment variable UNSHARD_MYSQL_ROOT,
    UNSHARD_MYSQL_5_6_ROOT and so on. Raises MissingProgramError if nothing is there.
    """
    variable = f"UNSHARD_{re.sub('[-.]', '_', name).upper()}_ROOT"
    tree = Path(os.environ.get(variable) or _CHECKOUT / ".servers" / name)
    if not (tree / "usr").is_dir():
        raise MissingProgramError(f"{name} is not in {tree}: run tools/test-servers, or `make test-mysql`")
    return tree


def unpacked(tree: Path, name: str) -> list[str]:
    """Return the command that runs a program of the tree: its loader, its libraries, the program; arguments may follow.

    A tree without a C library uses the system's loader.
    """
    (loader,) = {path.resolve() for path in tree.glob("usr/lib*/ld-linux*.so.*")} or {_LOADER}
    libraries = ":".join(str(path) for path in tree.glob("usr/lib/*-linux-gnu*") if path.is_dir())
    found = next((path for folder in ("sbin", "bin") if (path := tree / "usr" / folder / name).exists()), None)
    if found is None:
        raise MissingProgramError(f"{name} is not in {tree}: remove the folder and run tools/test-servers")
    return [str(loader), "--library-path", libraries, str(found)]


def mysqlbinlog() -> list[str]:
    """Return the command of MySQL's own `mysqlbinlog`; arguments may follow."""
    return unpacked(server_tree("mysql"), "mysqlbinlog")


class MysqlServer(LoggingServer):
    """A MySQL. Boots in a second. GTIDs are on, as in production; `binlog_row_metadata` is the server's default."""

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
        return mysqlbinlog()

    def _template(self) -> Path:
        command = self._command()
        return made_once(f"mysql-{version_of(command)}", lambda fresh: initialize(command, fresh))


class OtherMariadbServer(MariadbServer):
    """A MariaDB of the tree `mariadb`, newer than the installed one."""

    def _command(self) -> list[str]:
        tree = server_tree("mariadb")
        return [*unpacked(tree, "mariadbd"), "--no-defaults", f"--basedir={tree / 'usr'}"]

    def binlog_program(self) -> list[str]:
        return unpacked(server_tree("mariadb"), "mariadb-binlog")

    def _template(self) -> Path:
        command = self._command()
        return made_once(f"mariadb-{version_of(command)}", lambda fresh: _bootstrap(command, fresh))


def version_of(command: list[str]) -> str:
    """Return the version that a server's command prints, as part of a folder's name."""
    told = subprocess.run([*command[:4], "--version"], capture_output=True, text=True, check=True).stdout
    return "".join(letter if letter.isalnum() else "-" for letter in told.split("Ver ")[-1].split()[0])


def initialize(command: list[str], fresh: Path) -> None:
    """Fill an empty data folder; root has no password, at 127.0.0.1 too. Raises ServerBootError."""
    users = fresh.with_name(f"{fresh.name}.sql")
    users.write_text("CREATE USER root@'127.0.0.1';\nGRANT ALL ON *.* TO root@'127.0.0.1' WITH GRANT OPTION;\n")
    switches = ["--initialize-insecure", f"--datadir={fresh}", f"--init-file={users}", "--secure-file-priv=NULL"]
    try:
        _made([*command, *switches, "--innodb-redo-log-capacity=16M", *as_user()])
    finally:
        users.unlink()
    (fresh / "auto.cnf").unlink(missing_ok=True)  # each server gets a UUID of its own


def _bootstrap(command: list[str], fresh: Path) -> None:
    """Do what `mariadb-install-db` does, from the SQL files of the tree. Raises ServerBootError."""
    share = server_tree("mariadb") / "usr/share/mariadb"
    names = ("mariadb_system_tables.sql", "mariadb_performance_tables.sql", "mariadb_system_tables_data.sql")
    root = "REPLACE INTO global_priv VALUES ('127.0.0.1', 'root', '{\"access\": 18446744073709551615}');"
    run_bootstrap(command, fresh, [*((share / name).read_text() for name in names), root])


def run_bootstrap(command: list[str], fresh: Path, parts: Iterable[str], log_size: str = "16M") -> None:
    """Fill an empty data folder by running SQL in the schema `mysql`. Raises ServerBootError."""
    (fresh / "mysql").mkdir()
    switches = ["--bootstrap", f"--datadir={fresh}", f"--innodb-log-file-size={log_size}", "--skip-name-resolve"]
    _made([*command, *switches, *as_user()], "\n".join(["USE mysql;", *parts, ""]))


def _made(command: list[str], text: str = "") -> None:
    with tempfile.TemporaryDirectory(prefix="unshard-template-") as temporary:  # as `servers` does
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
    """A MySQL 8.0. Its `binlog_row_metadata` is MINIMAL."""

    position_query = "SHOW MASTER STATUS"

    def _command(self) -> list[str]:
        tree = server_tree("mysql-8.0")
        return [*unpacked(tree, "mysqld"), "--no-defaults", f"--basedir={tree / 'usr'}"]


class Mysql56Server(MysqlServer):
    """A MySQL 5.6 with GTIDs, which need `log_slave_updates` there. Its row metadata contain only types."""

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
        return made_once(f"mysql-{version_of(command)}", lambda fresh: _bootstrap_older(command, fresh, _LOG_SIZE))


class OldMariadbServer(MariadbServer):
    """A MariaDB 10.2."""

    def _command(self) -> list[str]:
        return _without_plugins("mariadb-10.2")

    def _template(self) -> Path:
        command = self._command()
        return made_once(f"mariadb-{version_of(command)}", lambda fresh: _bootstrap_older(command, fresh, "16M"))


def _without_plugins(name: str) -> list[str]:
    tree = server_tree(name)
    share = tree / "usr/share"
    return [*unpacked(tree, "mysqld"), "--no-defaults", f"--basedir={tree / 'usr'}", f"--lc-messages-dir={share}"]


def _bootstrap_older(command: list[str], fresh: Path, log_size: str) -> None:
    """Fill an empty data folder from the SQL files of the tree. Raises ServerBootError."""
    share = Path(command[-1].partition("=")[2])
    names = ("mysql_system_tables.sql", "mysql_system_tables_data.sql")
    root = "DELETE FROM user WHERE User = '';"
    run_bootstrap(command, fresh, [*((share / name).read_text() for name in names), root], log_size)
