"""INSERTs of many rows as MariaDB's bulk statements, which spare the server the parsing of the values.

A bulk statement is a prepared statement that is executed for many rows at once (COM_STMT_BULK_EXECUTE, since MariaDB
10.2). The server stores the same rows and reports the same errors, warnings and counts as for the INSERT as text; it
took two thirds of the processor time for rows of 200 bytes. What can't be sent in this way goes as text: to another
server, over an encrypted connection, or where the values of a column have no common type (`kernels.bulk_rows`).
Format: "COM_STMT_PREPARE" and "COM_STMT_BULK_EXECUTE" in MariaDB's knowledge base.

Releases of MariaDB before `_EARLIEST` lose rows of a bulk statement without an error where a trigger of the table
inserts into another table: the trigger's INSERT takes the rows' values (MDEV-24411, MDEV-34958). They get text, and of
every answer the count is compared with the rows that were sent.
"""

from __future__ import annotations

import re
import sys
from collections import OrderedDict
from dataclasses import dataclass, field
from typing import Any
from weakref import WeakKeyDictionary

import MySQLdb

from unshard.kernels.bulk_rows import bulk_rows
from unshard.model.change import ValuesList
from unshard.mysql.failures import is_transient
from unshard.mysql.plain_socket import LOST, LOST_TEXT, MALFORMED, Exchange, plain_socket, told
from unshard.target.writer import FEWEST_IN_BULK, ServerAnswer, query

_PREPARE, _BULK_EXECUTE, _CLOSE, _PING = b"\x16", b"\xfa", b"\x19", b"\x0e"
_WITH_TYPES = (128).to_bytes(2, "little")
_OK, _ERR = 0x00, 0xFF
_UNKNOWN = frozenset({1047, 1210, 1243, 1295, 1461, 1835, 4033})
"""Error numbers of a server, or of a proxy, that does not know or allow such statements. Nothing was changed then."""
_KEPT = 32
_EARLIEST = {(10, 6): 21, (10, 11): 11, (11, 4): 5, (11, 7): 2}
"""The first release of a series in which triggers take no values of a bulk statement.

No other series before 11.8 has such a release.
"""
_EARLIEST_SERIES = (11, 8)
_VERSION = re.compile(r"(?:5\.5\.5-)?(\d+)\.(\d+)\.(\d+).*MariaDB")
_RECORDS = re.compile(rb"Records: (\d+)")


@dataclass(slots=True)
class _Prepared:
    """The statements that are prepared on a connection, by their text; the one used last comes last."""

    usable: bool
    numbers: OrderedDict[bytes, int] = field(default_factory=OrderedDict)


_prepared: WeakKeyDictionary[Any, _Prepared] = WeakKeyDictionary()


def insert(connection: Any, sql: bytes, values: ValuesList, limit: int) -> ServerAnswer:
    """Run an INSERT, in bulk where that can be; `limit` is the longest statement in bytes that the server takes.

    Raises MySQLdb.Error.
    """
    answer = insert_in_bulk(connection, sql, values, limit)
    return query(connection, sql) if answer is None else answer


def insert_in_bulk(connection: Any, sql: bytes, values: ValuesList, limit: int) -> ServerAnswer | None:
    """Run an INSERT as a bulk statement; None, with nothing done, where it must be run as text.

    `limit`: the longest statement in bytes that the server takes. Raises MySQLdb.Error.
    """
    begin, end, columns = values
    prepared = _prepared.get(connection)
    if prepared is None:
        prepared = _prepared[connection] = _Prepared(_takes_bulk(connection))
    if not prepared.usable:
        return None
    found = bulk_rows(sql, begin, end, columns)
    if found is None or found[2] < FEWEST_IN_BULK:
        return None
    types, rows, count = found
    if len(types) + len(rows) >= limit:
        return None
    text = sql[:begin] + b"(" + b",".join([b"?"] * columns) + b")" + sql[end:]
    with Exchange(connection) as exchange:
        number = _number(exchange, prepared, text)
        if isinstance(number, bytes):
            answer = number
        else:
            exchange.send(b"".join((_BULK_EXECUTE, number.to_bytes(4, "little"), _WITH_TYPES, types, rows)))
            answer = _answer(exchange)
    if answer[0] == _ERR:
        failure = MySQLdb.OperationalError(*told(answer))
        if failure.args[0] in _UNKNOWN:
            prepared.usable = False
            return None
        if isinstance(number, int) or is_transient(failure):  # a deadlock has rolled the transaction back
            raise failure
        return None  # the text meets it too, and is judged
    done = _counted(answer)
    stored = _RECORDS.search(done.info)
    if stored is None or int(stored[1]) != count:
        told_text = f"the server tells of {done.info.decode(errors='replace')!r} for {count} rows of a bulk statement"
        raise MySQLdb.OperationalError(MALFORMED, told_text)
    return done


def _takes_bulk(connection: Any) -> bool:
    """Return whether the server takes bulk statements, over a socket that can be used. Raises MySQLdb.Error."""
    version = _VERSION.match(connection.get_server_info())
    return version is not None and _keeps_values(*map(int, version.groups())) and plain_socket(connection) is not None


def _keeps_values(major: int, minor: int, release: int) -> bool:
    """Return whether a trigger of such a MariaDB takes no values of a bulk statement."""
    series = (major, minor)
    return series >= _EARLIEST_SERIES or release >= _EARLIEST.get(series, sys.maxsize)


def _number(exchange: Exchange, prepared: _Prepared, text: bytes) -> int | bytes:
    """Return the number of the prepared statement, prepared now where it is not, or the server's ERR packet."""
    numbers = prepared.numbers
    if text in numbers:
        numbers.move_to_end(text)
        return numbers[text]
    if len(numbers) == _KEPT:
        exchange.send(_CLOSE + numbers.popitem(last=False)[1].to_bytes(4, "little"))
    exchange.send(_PREPARE + text)
    answer = _answer(exchange)
    if answer[0] == _ERR:
        return answer
    for _ in range(int.from_bytes(answer[7:9], "little")):
        exchange.packet()  # the definition of a parameter
    exchange.send(_PING)
    while (packet := exchange.packet())[:1] != b"\x00":  # client and server may have agreed on an end of definitions
        if packet[:1] == b"\xff":
            return packet
    numbers[text] = int.from_bytes(answer[1:5], "little")
    return numbers[text]


def _answer(exchange: Exchange) -> bytes:
    """Return the next OK or ERR packet. Raises MySQLdb.OperationalError 2013, also for another packet."""
    answer = exchange.packet()
    if not answer or answer[0] not in (_OK, _ERR):
        raise MySQLdb.OperationalError(LOST, f"{LOST_TEXT}: malformed packet")
    return answer


def _counted(answer: bytes) -> ServerAnswer:
    """Return what an OK packet tells: a byte, changed rows, the last id, two bytes of state, warnings, a text."""
    found, at = _length(answer, 1)
    _, at = _length(answer, at)
    return ServerAnswer(found, answer[at + 4 :], int.from_bytes(answer[at + 2 : at + 4], "little"))


def _length(answer: bytes, at: int) -> tuple[int, int]:
    """Return a number of variable length, and the place after it."""
    width = {0xFC: 2, 0xFD: 3, 0xFE: 8}.get(answer[at], 0)
    if not width:
        return answer[at], at + 1
    return int.from_bytes(answer[at + 1 : at + 1 + width], "little"), at + 1 + width
