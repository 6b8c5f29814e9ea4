"""Throwaway TiDB servers: the real server program with its embedded store, built by `tools/test-servers`.

One process contains SQL layer and store. Unlike a real cluster's, this store keeps the locks of two-phase commits only
in memory. So that a killed server neither loses nor tears a committed transaction, all keys are in one region and a
transaction commits in one phase (`split-table`, `tidb_enable_1pc`, `tidb_txn_commit_batch_size`). `tools/tidb/build`
says what is changed in the store.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

from unshard.testing.cache import server_folder
from unshard.testing.programs import MissingProgramError
from unshard.testing.throwaway_server import ThrowawayServer, reserved, template

_HOW_TO_BUILD = (
    "`tools/test-servers tidb`, in a checkout of Unshard's sources, builds it with Go, in some minutes; the environment"
    " variable UNSHARD_TIDB_ROOT names another folder that has tidb-server"
)
_VARIABLES = {
    "tidb_enable_1pc": "ON",
    "tidb_txn_commit_batch_size": str(1 << 30),
    "tidb_enable_auto_analyze": "OFF",
    "tidb_enable_telemetry": "OFF",
    "tidb_gc_enable": "OFF",
}
"""Global variables of the data folder with which every server begins.

All versions of all rows are kept: see `testing.tidb_history`.
"""
_SAFE_POINT = (
    "INSERT INTO mysql.tidb (VARIABLE_NAME, VARIABLE_VALUE, COMMENT)"
    " VALUES ('tikv_gc_safe_point', '20200101-00:00:00 +0000', '')"
)
"""The time from which versions are kept. Without it no session may read as of an earlier moment (`tidb_snapshot`)."""


def tidb_program() -> Path:
    """Return the server program, in the cache or in the folder that UNSHARD_TIDB_ROOT names.

    Raises MissingProgramError if it is not there.
    """
    folder = server_folder("tidb")
    if folder is None:
        raise MissingProgramError(f"TiDB's server is not there. {_HOW_TO_BUILD}")
    found = folder / "tidb-server"
    if not found.is_file():
        raise MissingProgramError(f"TiDB's server is not there: {found}. {_HOW_TO_BUILD}")
    return found


class TidbServer(ThrowawayServer):
    """A throwaway TiDB server. Boots in a fifth of a second.

    It has no binlog; `testing.tidb_history` reads the history of its rows. Options are items of TiDB's configuration
    file, items of a section with a dot (`performance.max-txn-ttl`). Global variables are set by SQL. `status_port`
    answers TiDB's HTTP requests, unless the option `status.report-status` is `false`.
    """

    product = "TiDB"
    defaults: ClassVar[Mapping[str, str]] = {
        "split-table": "false",
        "lease": '"1s"',
        "socket": '""',
        "log.level": '"warn"',
        "log.slow-query-file": '""',
        "instance.tidb_enable_slow_log": "false",
        "status.report-status": "true",
        "performance.stats-lease": '"0s"',
    }

    def __init__(self, options: Mapping[str, str] | None = None, *, start: bool = True) -> None:
        self._status_place = reserved()
        self.status_port = int(self._status_place.getsockname()[1])
        super().__init__(options, start=start)

    def close(self) -> None:
        """End the server and remove its data. Idempotent."""
        super().close()
        self._status_place.close()

    def _template(self) -> Path:
        program = tidb_program()
        at_first = {name: value for name, value in self.options.items() if name.endswith("on_first_bootstrap")}
        options = {**self.defaults, **at_first}
        made_of = [program.stat().st_size, program.stat().st_mtime, options, _VARIABLES, _SAFE_POINT]
        return template("tidb", made_of, lambda fresh: _bootstrap(fresh, options))

    def _command_line(self) -> list[str]:
        own: dict[str, Any] = {
            "host": '"127.0.0.1"',
            "port": self.port,
            "store": '"unistore"',
            "path": json.dumps(str(self.data)),
            "temp-dir": json.dumps(str(self.folder / "temp")),
            "tmp-storage-path": json.dumps(str(self.folder / "temp")),
            "log.file.filename": json.dumps(str(self._log)),
            "status.status-host": '"127.0.0.1"',
            "status.status-port": self.status_port,
        }
        sections: dict[str, list[str]] = {}
        for name, value in (own | dict(self.options)).items():
            if value != "":
                section, _, item = name.rpartition(".")
                sections.setdefault(section, []).append(f"{item} = {value}")
        file = self.folder / "config.toml"
        blocks = ((f"[{section}]" if section else "", *lines) for section, lines in sorted(sections.items()))
        file.write_text("\n".join("\n".join(block) for block in blocks) + "\n")
        # it does not write errors in its configuration to its log
        shell = 'exec "$@" >>"$0" 2>&1'
        return ["/bin/sh", "-c", shell, str(self._log), str(tidb_program()), "-config", str(file)]


class _Fresh(TidbServer):
    """A TiDB server that creates its system tables itself, in an empty folder."""

    def _template(self) -> Path:
        return template("tidb-empty", None, lambda fresh: None)


def _bootstrap(fresh: Path, options: Mapping[str, str]) -> None:
    """Fill an empty folder with the data of a TiDB that no user has ever used. Raises ServerBootError."""
    with _Fresh(options) as server:
        server.run(*(f"SET GLOBAL {name} = '{value}'" for name, value in _VARIABLES.items()), _SAFE_POINT)
        server.stop()
        for path in server.data.iterdir():
            shutil.move(path, fresh / path.name)
