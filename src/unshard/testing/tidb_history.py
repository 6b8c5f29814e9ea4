"""The history of rows in a TiDB, which has no binlog: every version of every row, with its transaction.

TiDB keeps all versions of a key until its garbage collection, which `TidbServer` turns off. TiDB's own HTTP service
(`/mvcc/key`) lists the transactions that wrote a key. A query as of a moment (`tidb_snapshot`) returns the row as it
was then, with the structure of that moment. Both survive a stop and a kill of the server, thanks to two changes to the
embedded store that `tools/tidb/build` makes.

A transaction leaves one version of a row, however many changes of it the transaction carried. So a history is compared
with the source's log row by row, in order (`walks`), and not change by change.

Values are formatted as `mariadb-binlog -v` writes them in a row image.
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

_BITS = {FIELD_TYPE.TINY: 8, FIELD_TYPE.SHORT: 16, FIELD_TYPE.INT24: 24, FIELD_TYPE.LONG: 32, FIELD_TYPE.LONGLONG: 64}


def image_text(value: bytes | None, kind: int, flags: int, length: int) -> str:
    """Return a value in the binlog program's format.

    `kind`, `flags` and `length` describe the result's column, in a UTC session. Raises LookupError for a type whose
    images don't follow from the value alone: ENUM, SET, JSON, geometry.
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
        value = value.rstrip(b"\0")  # a log omits the trailing zeros of a BINARY
    return _TEXTS[kind](value)


def _integer(value: int, bits: int, unsigned: bool) -> str:
    """Return the text of an integer.

    A binlog doesn't say whether a column is unsigned, so both readings are shown if they differ.
    """
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
    """A committed transaction, identified by the times of TiDB's clock at which it began and committed."""

    committed: int
    begun: int


class Version(NamedTuple):
    """A version of a row, as a transaction left it.

    `image` has the values as `mariadb-binlog -v` writes them, and is None if the transaction deleted the row. `before`
    is the row when the transaction committed, with the structure of that moment. A DDL after the previous version may
    have added columns to it, with their defaults.
    """

    transaction: Transaction
    image: Image | None
    before: Image | None = None


@dataclass(frozen=True, slots=True)
class Receipt:
    """One update of a receipt: of the receipt of a source's partition, or of a file of the first copy.

    `to` is the progress to which the transaction advanced it.
    """

    of: tuple[str, ...]
    to: tuple[str, ...]


def versions(server: TidbServer, table: TableName, keys: Iterable[str]) -> dict[str, list[Version]]:
    """Return the versions of these rows and of all existing rows, oldest first, by the value of the key.

    The key must be one column, the table's first, with a whole number. Raises LookupError for a table without one.
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
    """Return the versions that changed the row.

    TiDB also writes versions without a change when a column's type changes.
    """
    return (version for version in history if version.image != version.before)


def walks(history: Sequence[Version], states: Sequence[Image | None], *, copied: bool = False) -> str:
    """Return why these versions of a row don't match its changes upstream, each applied once; empty if they do.

    `states` are the row after each change, None for a DELETE. A version may cover several successive changes, a change
    has at most one version, and the last version is the last state. A version without a change is a row that was
    written as it was: behind a DDL that adds a column, a DELETE and an INSERT of one transaction may leave it so, and
    TiDB writes rows anew when it changes a column's type. With `copied`, the first version may be the row as
    a copy found it at any moment; earlier changes then have no version.
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
    end = history[-1].image if history else last
    if states and states[-1] not in (last, end) and not (copied and not place):
        return f"missing: upstream it is {states[-1]} in the end, here {end}"
    return ""


def receipts(server: TidbServer) -> tuple[dict[Transaction, list[Receipt]], list[str]]:
    """Return the receipts that each transaction moved, of all tasks in the server.

    The second value lists those that came twice to a position.
    """
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
                    if to != before:  # otherwise another column has changed: the epoch, or the record of a retry
                        twice += [f"came twice to {to}: receipt {of}"] if to in known else []
                        moved.setdefault(transaction, []).append(Receipt(of, to))
                        known.add(to)
                        before = to
    return moved, twice


def _receipt_tables(server: TidbServer) -> Iterator[tuple[TableName, tuple[str, ...], tuple[str, ...]]]:
    """Yield the receipt tables of all tasks: name, key columns, and the columns with the progress."""
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
    """Return the rows as they were at each moment of TiDB's clock, without those that did not exist then."""
    found: dict[tuple[int, str], Image] = {}
    with closing(connect(server.endpoint, "target", text=False)) as connection, connection.cursor() as cursor:
        for moment, keys in sorted(moments.items()):
            cursor.execute(f"SET @@tidb_snapshot = '{moment}'")
            cursor.execute(f"SELECT * FROM {table.quoted} LIMIT 0")
            terms = ", ".join(
                quote_name(column[0]) + " + 0" * bool(flags & FLAG.ENUM)  # a binlog has the member's number
                for column, flags in zip(cursor.description, cursor.description_flags, strict=True)
            )
            for start in range(0, len(keys), _KEYS_A_QUERY):
                listed = ", ".join(keys[start : start + _KEYS_A_QUERY])
                cursor.execute(f"SELECT {terms} FROM {table.quoted} WHERE {quote_name(key)} IN ({listed})")
                kinds = [(column[1], column[4]) for column in cursor.description]
                for row in cursor.fetchall():
                    found[moment, row[0].decode()] = tuple(
                        image_text(value, kind, flags, length)
                        for value, (kind, length), flags in zip(row, kinds, cursor.description_flags, strict=True)
                    )
    return found


class _Service(AbstractContextManager["_Service"]):
    """A connection to TiDB's HTTP service."""

    def __init__(self, server: TidbServer) -> None:
        self._connection = HTTPConnection("127.0.0.1", server.status_port)

    def __exit__(self, *_: object) -> None:
        self._connection.close()

    def transactions(self, path: str) -> list[Transaction]:
        """Return the transactions that wrote a key, oldest first."""
        return sorted(_committed(self._told(path)["value"]["info"]))

    def rows(self, table: TableName, key: Mapping[str, Any]) -> list[tuple[Transaction, dict[str, str]]]:
        """Return the row after each transaction, oldest first, for a key of several columns."""
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
