"""What was done to the rows of a TiDB, which has no binlog: every version of every row, with its transaction.

TiDB keeps all versions of a key until its garbage collection, which `TidbServer` leaves off. Which transactions wrote
a key is told by TiDB's own HTTP service (`/mvcc/key`), what the row was then by a query as of that moment
(`tidb_snapshot`), under the structure of that moment. Both outlive a stop and a kill of the server; the latter by a
change to the embedded store that `tools/tidb/build` makes.

A transaction leaves one version of a row, however many of its changes it carried. So a history is held against the
log of the source row by row, in order (`walks`), and not change by change.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing
from dataclasses import dataclass
from datetime import UTC, datetime
from http import HTTPStatus
from http.client import HTTPConnection
from typing import Any, NamedTuple
from urllib.parse import quote, urlencode

from MySQLdb.constants import FIELD_TYPE, FLAG

from unshard.model.table import TableName, quote_name
from unshard.mysql.connection import connect
from unshard.testing.binlog_count import Image
from unshard.testing.tidb_server import TidbServer

# A value that a server answers a query with, as `mariadb-binlog -v` writes it in the image of a row.


_BITS = {FIELD_TYPE.TINY: 8, FIELD_TYPE.SHORT: 16, FIELD_TYPE.INT24: 24, FIELD_TYPE.LONG: 32, FIELD_TYPE.LONGLONG: 64}


def image_text(value: bytes | None, kind: int, flags: int, length: int) -> str:
    """`kind`, `flags` and `length` as the server tells them of the result's column, in a session whose time is UTC.

    Raises LookupError for a kind whose images are not told by the value alone: ENUM, SET, JSON, geometry.
    """
    if value is None:
        return "NULL"
    if kind in _BITS:
        return _integer(int(value), _BITS[kind], bool(flags & FLAG.UNSIGNED))
    if kind == FIELD_TYPE.BIT:
        return f"b'{int.from_bytes(value, 'big'):0{length}b}'"
    if kind not in _TEXTS or flags & (FLAG.ENUM | FLAG.SET):
        raise LookupError(f"values of type {kind} are not compared with images of a binlog")
    if kind == FIELD_TYPE.STRING and flags & FLAG.BINARY:
        value = value.rstrip(b"\0")  # a log leaves out what fills a BINARY up
    return _TEXTS[kind](value)


def _integer(value: int, bits: int, unsigned: bool) -> str:
    """A binlog doesn't tell whether a column is unsigned: both readings are shown of what they differ in."""
    if unsigned and value >> (bits - 1):
        return f"{value - (1 << bits)} ({value})"
    return f"{value} ({value + (1 << bits)})" if value < 0 else str(value)


def _quoted(value: bytes) -> str:
    shown = b"".join(b"\\x%02x" % byte if byte < 0x20 else bytes((byte,)) for byte in value)
    return f"'{shown.decode('utf-8', 'surrogateescape')}'"


def _plain(value: bytes) -> str:
    return value.decode()


def _date(value: bytes) -> str:
    return f"'{value.decode().replace('-', ':')}'"


def _timestamp(value: bytes) -> str:
    whole, dot, fraction = value.decode().partition(".")
    moment = datetime.strptime(whole, "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC)
    return f"{int(moment.timestamp())}{dot}{fraction}"


def _float(value: bytes) -> str:
    (single,) = struct.unpack("f", struct.pack("f", float(value)))
    return f"{single:<-20g}"


def _double(value: bytes) -> str:
    return f"{float(value):.20g}"


_TEXTS: Mapping[int, Callable[[bytes], str]] = {
    FIELD_TYPE.YEAR: _plain,
    FIELD_TYPE.NEWDECIMAL: _plain,
    FIELD_TYPE.FLOAT: _float,
    FIELD_TYPE.DOUBLE: _double,
    FIELD_TYPE.DATE: _date,
    FIELD_TYPE.TIME: _quoted,
    FIELD_TYPE.DATETIME: _quoted,
    FIELD_TYPE.TIMESTAMP: _timestamp,
    **dict.fromkeys(
        (
            FIELD_TYPE.VARCHAR,
            FIELD_TYPE.VAR_STRING,
            FIELD_TYPE.STRING,
            FIELD_TYPE.TINY_BLOB,
            FIELD_TYPE.BLOB,
            FIELD_TYPE.MEDIUM_BLOB,
            FIELD_TYPE.LONG_BLOB,
        ),
        _quoted,
    ),
}


_KEYS_A_QUERY = 500
_PUT, _DELETE = 0, 1


class Transaction(NamedTuple):
    """A committed transaction, by the moments of TiDB's clock at which it began and committed."""

    committed: int
    begun: int


class Version(NamedTuple):
    """What a transaction made of a row: its values as `mariadb-binlog -v` writes them, None where it deleted it.

    `before` is what the row was when the transaction committed, under the structure of that moment: a DDL that was run
    since the version before may have given it columns, with their defaults.
    """

    transaction: Transaction
    image: Image | None
    before: Image | None = None


@dataclass(frozen=True, slots=True)
class Receipt:
    """How far a transaction moved a receipt: of a partition of a source, or of a file of the first copy."""

    of: tuple[str, ...]
    to: tuple[str, ...]


def versions(server: TidbServer, table: TableName, keys: Iterable[str]) -> dict[str, list[Version]]:
    """The versions of these rows and of all that are there now, the oldest first, by the value of the key.

    The key is one column, the table's first, with a whole number. Raises LookupError for a table without one.
    """
    with closing(server.connection()) as connection, connection.cursor() as cursor:
        cursor.execute(f"SHOW COLUMNS FROM {table.quoted}")
        name, definition, _, key, *_ = cursor.fetchone()
        if key != "PRI" or "int" not in definition.lower():
            raise LookupError(f"{table}: the history of a row is told by a whole number that is the first column")
        cursor.execute(f"SELECT {quote_name(name)} FROM {table.quoted}")
        wanted = dict.fromkeys(keys) | dict.fromkeys(str(key) for (key,) in cursor.fetchall())
    with _Service(server) as service:
        path = f"/mvcc/key/{quote(table.schema)}/{quote(table.table)}/"
        written = {key: service.transactions(path + key) for key in wanted}
    moments: dict[int, list[str]] = {}
    for key, found in written.items():
        for moment in {one.committed - before for one in found for before in (0, 1)}:
            moments.setdefault(moment, []).append(key)
    images = _images(server, table, name, moments)
    return {
        key: [Version(one, images.get((one.committed, key)), images.get((one.committed - 1, key))) for one in found]
        for key, found in written.items()
    }


def changed(history: Iterable[Version]) -> Iterator[Version]:
    """Without versions that leave the row as it was: TiDB writes such where a column gets another type."""
    return (version for version in history if version.image != version.before)


def walks(history: Iterable[Version], states: Sequence[Image | None], *, copied: bool = False) -> str:
    """Why these versions of a row are not what its changes upstream have made of it, each once; empty if they are.

    `states` are what each change left, None for a DELETE. A version may stand for several changes in a row, a change
    has one version at most, and the last version is the last state. With `copied`, the first version may be what a
    copy found at any moment; changes before it have none.
    """
    place, last = 0, None
    for number, version in enumerate(changed(history)):
        last = version.image
        following = next((at for at in range(place, len(states)) if states[at] == last), None)
        if following is not None:
            place = following + 1
        elif not (copied and number == 0):
            what = "applied again" if last in (None, *states[:place]) else "from nowhere"
            return f"{what}: {last}, at {version.transaction.committed}; next upstream: {list(states[place:][:3])}"
    if states and last != states[-1] and not (copied and not place):
        return f"missing: upstream it is {states[-1]} in the end, here {last}"
    return ""


def receipts(server: TidbServer) -> tuple[dict[Transaction, list[Receipt]], list[str]]:
    """Which receipts each transaction moved, of all tasks in the server; and which came to one place twice."""
    moved: dict[Transaction, list[Receipt]] = {}
    twice: list[str] = []
    with _Service(server) as service:
        for table, key, place in _receipt_tables(server):
            listed = ", ".join(map(quote_name, key))
            for values in server.query(f"SELECT {listed} FROM {table.quoted}"):
                of = (str(table), *map(str, values))
                known: set[tuple[str, ...]] = set()
                before: tuple[str, ...] = ()
                for transaction, row in service.rows(table, dict(zip(key, values, strict=True))):
                    to = tuple(row.get(column, "0") for column in place)
                    if to != before:  # else another column: the epoch, or what is tried again
                        twice += [f"came twice to {to}: receipt {of}"] if to in known else []
                        moved.setdefault(transaction, []).append(Receipt(of, to))
                        known.add(to)
                        before = to
    return moved, twice


def _receipt_tables(server: TidbServer) -> Iterator[tuple[TableName, tuple[str, ...], tuple[str, ...]]]:
    """The tables of receipts of all tasks: name, columns of the key, columns that tell how far it is."""
    for ending, key, place in (
        ("apply_partition", ("source", "part"), ("batch_id", "chunk", "step")),
        ("load_chunk", ("source", "file"), ("dump", "piece", "step")),
    ):
        asked = "SELECT TABLE_SCHEMA, TABLE_NAME FROM information_schema.TABLES WHERE TABLE_NAME LIKE %s"
        for schema, name in server.query(asked, (f"%\\_{ending.replace('_', chr(92) + '_')}",)):
            yield TableName(schema, name), key, place


def _images(
    server: TidbServer, table: TableName, key: str, moments: Mapping[int, Sequence[str]]
) -> dict[tuple[int, str], Image]:
    """The rows as they were at each moment of TiDB's clock; those that were not there then are left out."""
    found: dict[tuple[int, str], Image] = {}
    with closing(connect(server.endpoint, "target", text=False)) as connection, connection.cursor() as cursor:
        for moment, keys in sorted(moments.items()):
            cursor.execute(f"SET @@tidb_snapshot = '{moment}'")
            for start in range(0, len(keys), _KEYS_A_QUERY):
                listed = ", ".join(keys[start : start + _KEYS_A_QUERY])
                cursor.execute(f"SELECT * FROM {table.quoted} WHERE {quote_name(key)} IN ({listed})")
                kinds = [(column[1], column[4]) for column in cursor.description]
                for row in cursor.fetchall():
                    found[moment, row[0].decode()] = tuple(
                        image_text(value, kind, flags, length)
                        for value, (kind, length), flags in zip(row, kinds, cursor.description_flags, strict=True)
                    )
    return found


class _Service(AbstractContextManager["_Service"]):
    """TiDB's HTTP service."""

    def __init__(self, server: TidbServer) -> None:
        self._connection = HTTPConnection("127.0.0.1", server.status_port)

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def transactions(self, path: str) -> list[Transaction]:
        """Those that wrote a key, the oldest first."""
        return sorted(_committed(self._told(path)["value"]["info"]))

    def rows(self, table: TableName, key: Mapping[str, Any]) -> list[tuple[Transaction, dict[str, str]]]:
        """What each transaction made of the row with that key of several columns, the oldest first."""
        asked = urlencode({**key, "decode": "true"})
        told = self._told(f"/mvcc/key/{quote(table.schema)}/{quote(table.table)}?{asked}")
        return [(one, told["data"].get(str(one.begun), {})) for one in sorted(_committed(told["info"]))]

    def _told(self, path: str) -> Any:
        self._connection.request("GET", path)
        answer = self._connection.getresponse()
        text = answer.read()
        if answer.status != HTTPStatus.OK:
            raise LookupError(f"{path}: {answer.status} {text.decode(errors='replace')[:500]}")
        return json.loads(text)


def _committed(info: Mapping[str, Any]) -> Iterator[Transaction]:
    for write in info.get("writes") or ():
        if write.get("type", _PUT) in (_PUT, _DELETE):
            yield Transaction(write["commit_ts"], write["start_ts"])
