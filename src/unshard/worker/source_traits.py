"""Settings of a source's server on which the meaning of its statements depends."""

from __future__ import annotations

from functools import partial

from unshard.ddl.context import logs_explicit_defaults
from unshard.ddl.evaluate import server_dialect
from unshard.errors import UnshardError
from unshard.log import logger
from unshard.model.table import TableName
from unshard.mysql.connection import Endpoint, rows, session
from unshard.mysql.flavour import Flavour, identify
from unshard.source.system_zone import default_zone, system_zone
from unshard.sync.statements.reader import SourceTraits


def read_traits(endpoint: Endpoint) -> SourceTraits:
    """Return its flavour, how it folds names, its time zones and its defaults of TIMESTAMP. Raises SourceError."""
    with session(endpoint, "source") as connection:
        server = identify(connection)
        ((names, zone),) = rows(connection, "SELECT @@lower_case_table_names, @@global.time_zone")
        of_host = system_zone(connection)
        mariadb = server.flavour is Flavour.MARIADB
        dialect = server_dialect(mariadb=mariadb, version=server.version)
        explicit = rows(connection, "SHOW GLOBAL VARIABLES LIKE 'explicit_defaults_for_timestamp'")
        return SourceTraits(
            mariadb,
            int(names) == 1,
            of_host,
            dialect,
            default_zone=of_host if str(zone).upper() == "SYSTEM" else str(zone),
            explicit_defaults=bool(explicit) and explicit[0][1] == "ON",  # servers without it have the implied defaults
            logs_defaults=logs_explicit_defaults(server.version),
            inline_references=tuple(server.version) >= ((10, 5) if mariadb else (9,)),
            logs_creates=not mariadb or tuple(server.version) < (10, 11),
            keeps_name=partial(_keeps_name, endpoint),
            kind_of=partial(_kind_of, endpoint),
        )


def source_zone(endpoint: Endpoint) -> str:
    """Return the time zone of sessions that set none, as `SourceTraits.default_zone`. Raises SourceError."""
    with session(endpoint, "source") as connection:
        return default_zone(connection)


_CLOCKS_SECONDS = 300
"""By how much the clocks of servers may differ that a statement has come through."""
_TYPE = "SELECT TABLE_TYPE FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s"
_DEFINED = """
SELECT UNIX_TIMESTAMP(CREATE_TIME) FROM information_schema.TABLES WHERE TABLE_SCHEMA = %s AND TABLE_NAME = %s
"""


def _kind_of(endpoint: Endpoint, name: TableName) -> str:
    """Return the TABLE_TYPE that a server has under the name, "" where it has none or can't be asked now."""
    try:
        with session(endpoint, "source") as connection:
            found = rows(connection, _TYPE, (name.schema, name.table))
            return str(found[0][0]) if found else ""
    except UnshardError as error:
        words = {"table": str(name), "error": str(error)}
        logger("sync").warning("the source can't be asked whether a RENAME was of a view", **words)
        return ""


def _keeps_name(endpoint: Endpoint, old: TableName, new: TableName, before: float) -> bool:
    """Return whether a MariaDB has the table `old`, last defined or renamed before that time, and no table `new`.

    False, too, where it can't be asked now.
    """
    try:
        with session(endpoint, "source") as connection:
            there = rows(connection, _DEFINED, (old.schema, old.table))
            if not there or there[0][0] is None or int(there[0][0]) >= before - _CLOCKS_SECONDS:
                return False
            return not rows(connection, _DEFINED, (new.schema, new.table))
    except UnshardError as error:
        words = {"table": str(old), "error": str(error)}
        logger("sync").warning("the source can't be asked whether a RENAME was of a temporary table", **words)
        return False
