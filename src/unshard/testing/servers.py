"""Throwaway MariaDB servers: those that Debian's package has installed on this machine."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from unshard.testing.programs import program
from unshard.testing.throwaway import LoggingServer, ServerBootError, as_user, made_once

__all__ = ["MariadbServer", "ServerBootError"]


class MariadbServer(LoggingServer):
    """A MariaDB, as installed here. Boots in a quarter of a second."""

    product = "MariaDB"
    defaults: ClassVar[Mapping[str, str]] = {
        "log_bin": "mysql-bin",
        "binlog_format": "ROW",
        "binlog_row_image": "FULL",
        "binlog_checksum": "CRC32",
        "gtid_strict_mode": "ON",
        "sync_binlog": "0",
        "character_set_server": "utf8mb4",
        "innodb_buffer_pool_size": "64M",
        "innodb_log_file_size": "16M",
        "innodb_flush_log_at_trx_commit": "2",  # a killed process loses nothing of it; only a power cut would
        "key_buffer_size": "1M",
        "aria_pagecache_buffer_size": "2M",
        "max_connections": "200",
        "max_allowed_packet": "64M",
    }

    def _command(self) -> list[str]:
        return [program("mariadbd"), "--no-defaults"]

    def binlog_program(self) -> list[str]:
        return [program("mariadb-binlog")]

    def _template(self) -> Path:
        version = subprocess.run([program("mariadbd"), "--version"], capture_output=True, text=True, check=True).stdout
        name = "".join(letter if letter.isalnum() else "-" for letter in version.split("Ver ")[-1].split()[0])
        return made_once(name, _install)


def _install(fresh: Path) -> None:
    """Fill an empty data folder. Raises ServerBootError."""
    made = subprocess.run(
        [
            program("mariadb-install-db"),
            "--no-defaults",
            f"--datadir={fresh}",
            "--auth-root-authentication-method=normal",
            "--skip-test-db",
            "--skip-name-resolve",
            "--innodb-log-file-size=16M",
            *as_user(),
        ],
        capture_output=True,
        text=True,
        check=False,
    )
    if made.returncode != 0:
        raise ServerBootError(f"mariadb-install-db failed:\n{made.stdout[-2000:]}{made.stderr[-2000:]}")
