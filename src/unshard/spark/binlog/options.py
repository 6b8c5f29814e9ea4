"""The options of a reader (`.option(…)`). All of them are checked before any file is opened."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from unshard.errors import ConfigError
from unshard.model.position import Position
from unshard.model.table import TableName
from unshard.mysql.connection import Endpoint

_NAMES = frozenset(
    {"path", "table", "startingposition", "rangebytes", "maxbytespertrigger", "host", "port", "user", "password"}
)
_RANGE_BYTES = 32 << 20
_TRIGGER_BYTES = 256 << 20


@dataclass(frozen=True, slots=True)
class Options:
    """The options of one reader.

    `table` is None for the changes of all tables. `start` is None for the first file. `server` is where the structures
    of the tables are read; None reads them from the binlog itself.
    """

    path: Path
    table: TableName | None = None
    start: Position | None = None
    range_bytes: int = _RANGE_BYTES
    trigger_bytes: int = _TRIGGER_BYTES
    server: Endpoint | None = field(default=None, repr=False)


def read_options(given: Mapping[str, str]) -> Options:
    """Parse the options that the user gave; their names in any case. Raises ConfigError CONFIG-011."""
    values = {name.lower(): value for name, value in given.items()}
    unknown = sorted(set(values) - _NAMES)
    if unknown:
        raise _bad(f"unknown option {', '.join(unknown)}; there are {', '.join(sorted(_NAMES))}")
    if not values.get("path"):
        raise _bad("option path is missing: a binlog file, or a folder of them")
    return Options(
        path=Path(values["path"].removeprefix("file://")),
        table=_table(values.get("table")),
        start=_position(values.get("startingposition")),
        range_bytes=_bytes(values, "rangebytes", _RANGE_BYTES),
        trigger_bytes=_bytes(values, "maxbytespertrigger", _TRIGGER_BYTES),
        server=_server(values),
    )


def _table(text: str | None) -> TableName | None:
    if not text:
        return None
    schema, _, table = text.partition(".")
    if not schema or not table:
        raise _bad(f"table is {text!r}: write schema.table")
    return TableName(schema, table)


def _position(text: str | None) -> Position | None:
    if not text:
        return None
    try:
        position = Position.parse(text)
        position.number  # noqa: B018
    except ValueError:
        raise _bad(f"startingPosition is {text!r}: write file:offset, as mysql-bin.000003:4") from None
    return position


def _bytes(values: Mapping[str, str], name: str, default: int) -> int:
    text = values.get(name, str(default))
    if not text.isdigit() or int(text) < 1:
        raise _bad(f"{name} is {text!r}: write a number of bytes")
    return int(text)


def _server(values: Mapping[str, str]) -> Endpoint | None:
    if "host" not in values:
        lone = sorted({"port", "user", "password"}.intersection(values))
        if lone:
            raise _bad(f"option {', '.join(lone)} without host")
        return None
    port = values.get("port", "3306")
    if not port.isdigit():
        raise _bad(f"port is {port!r}: write a number")
    return Endpoint(values["host"], int(port), values.get("user", "root"), values.get("password", ""))


def _bad(cause: str) -> ConfigError:
    return ConfigError("CONFIG-011", cause=cause)
