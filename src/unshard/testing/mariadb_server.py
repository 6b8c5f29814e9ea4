"""A throwaway MariaDB, of the version that Debian's package installs on this machine."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import ClassVar

from unshard.testing.programs import program, program_version
from unshard.testing.throwaway_server import LoggingServer, ServerBootError, as_user, template


class MariadbServer(LoggingServer):
    """A throwaway server of the MariaDB that is installed here. Boots in a quarter of a second."""

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
        """As `ThrowawayServer.binlog_program`."""
        return [program("mariadb-binlog")]

    def _template(self) -> Path:
        return template(f"mariadb-{program_version([program('mariadbd')])}", _INSTALL_OPTIONS, _install)


_INSTALL_OPTIONS = (
    "--auth-root-authentication-method=normal",
    "--skip-test-db",
    "--skip-name-resolve",
    "--innodb-log-file-size=16M",
)


def _install(fresh: Path) -> None:
    """Fill an empty data folder. Raises ServerBootError."""
    with tempfile.TemporaryDirectory(prefix="unshard-template-") as temporary:
        made = subprocess.run(
            [
                program("mariadb-install-db"),
                "--no-defaults",
                f"--datadir={fresh}",
                *_INSTALL_OPTIONS,
                *as_user(),
            ],
            env={**os.environ, "TMPDIR": temporary},  # a server that starts removes temporary tables of others there
            capture_output=True,
            text=True,
            check=False,
        )
    if made.returncode != 0:
        raise ServerBootError(f"mariadb-install-db failed:\n{made.stdout[-2000:]}{made.stderr[-2000:]}")
