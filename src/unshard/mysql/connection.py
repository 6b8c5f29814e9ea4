"""Connections to source and target. The only place where a driver's errors become errors of the catalogue."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field, replace
from typing import TYPE_CHECKING, Any, Literal
from weakref import WeakKeyDictionary

import MySQLdb
from MySQLdb.constants import CLIENT

from unshard.errors import SourceError, TargetError, UnshardError
from unshard.model.table import quote_text
from unshard.mysql.failures import Failure, failure_of
from unshard.mysql.target_session import begin_session

if TYPE_CHECKING:  # a process without encrypted connections does not load it
    from unshard.mysql.tls import Tls

Side = Literal["source", "target"]

_CODES = {
    Failure.UNREACHABLE: "{prefix}-001",
    Failure.REFUSED: "{prefix}-002",
    Failure.LOST: "{prefix}-003",
    Failure.BUSY: "{prefix}-005",
    Failure.READ_ONLY: "{prefix}-006",
    Failure.TOO_LARGE: "{prefix}-007",
    Failure.TLS: "{prefix}-008",
    Failure.SHORT_OF_MEMORY: "{prefix}-009",
}
_OTHER = "{prefix}-004"
_AT_TARGET = frozenset({Failure.READ_ONLY, Failure.TOO_LARGE, Failure.SHORT_OF_MEMORY})

_TIMEOUT_SECONDS = 10
_GONE, _LOST, _TLS_FAULT = 2006, 2013, 2026  # the C driver's own numbers, and PyMySQL's

_SHOWN = " /*!80030 , @@session.show_gipk_in_create_table_and_information_schema = ON */"
"""Appended to the statement that sets a source's session variables.

It makes MySQL show the primary keys that MySQL itself generated (`my_row_id`), because the binlog contains their
columns. Older servers and MariaDB ignore the version comment; TiDB, which is never a source, would not.
"""

_OWN = {"sql_select_limit": str((1 << 64) - 1), "completion_type": "NO_CHAIN"}
"""Variables whose global values would change the outcome of statements without an error.

A limit on the rows of a SELECT cuts results off. With `completion_type` CHAIN a COMMIT begins another transaction, in
which the statements after it stay uncommitted; with RELEASE it ends the session.
"""

STATEMENT_SECONDS = 70 * 60
ROWS_SECONDS = 5 * 60
READ_SECONDS = 15 * 60
LOOK_SECONDS = 5
"""The limits on a server's silence within a statement, after which its connection counts as lost: `STATEMENT_SECONDS`
for any statement, `ROWS_SECONDS` for writing a chunk of rows or a question, `READ_SECONDS` for reading a table,
`LOOK_SECONDS` for the status display. Without a limit a stalled network would never be noticed.
"""
_traits: WeakKeyDictionary[Any, ConnectionTraits] = WeakKeyDictionary()


@dataclass(frozen=True, slots=True)
class ConnectionTraits:
    """The silence of a server after which its connection counts as lost, and whether the connection uses TLS."""

    patience_seconds: int
    encrypted: bool


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The address of a server, with the login.

    Args:
        session: session variables to set on each connection.
        tls: None for connections without encryption.
        patience_seconds: the longest silence of the server within a statement before a connection counts as lost.
    """

    host: str
    port: int
    user: str
    password: str = field(default="", repr=False)
    session: tuple[tuple[str, str], ...] = ()
    tls: Tls | None = None
    patience_seconds: int = STATEMENT_SECONDS

    def with_session(self, **variables: str) -> Endpoint:
        """Return the endpoint with more session variables. Those that the user has set take precedence."""
        return replace(self, session=tuple({**variables, **dict(self.session)}.items()))


def connect(endpoint: Endpoint, side: Side, *, text: bool = True, patience_seconds: int = STATEMENT_SECONDS) -> Any:
    """Open a connection: utf8mb4, UTC, autocommit on, multi-statements on, matched rows counted.

    Results have all of their rows and a COMMIT ends its transaction, whatever the server's global variables are. With
    `text=False` every value stays the bytes that the server sent (for bulk reads). If the server is silent for
    `patience_seconds` within a statement, the statement fails as on a lost connection. For the further settings of a
    target's session see `mysql.target_session`.
    Raises SourceError or TargetError 001 (can't reach, retryable), 002 (refused) or 008 (TLS).
    """
    options: dict[str, Any] = {}
    patience = min(patience_seconds, endpoint.patience_seconds)
    if not text:
        options = {"conv": {}, "use_unicode": False}
    variables = {"time_zone": "+00:00", **dict(endpoint.session), **_OWN}
    begin = "SET " + ", ".join(f"@@session.{name} = {_literal(value)}" for name, value in variables.items())
    if side == "source":
        begin += _SHOWN
    options |= {
        "host": endpoint.host,
        "port": endpoint.port,
        "user": endpoint.user,
        "password": endpoint.password,
        "charset": "utf8mb4",
        "autocommit": True,
        "connect_timeout": _TIMEOUT_SECONDS,
        "read_timeout": patience,
        "write_timeout": patience,
        "init_command": begin,
        "client_flag": CLIENT.MULTI_STATEMENTS | CLIENT.FOUND_ROWS,
        "local_infile": False,
    }
    try:
        connection = MySQLdb.connect(**options) if endpoint.tls is None else _encrypted(endpoint.tls, options)
        if side == "target":
            begin_session(connection, endpoint.session)
        _traits[connection] = ConnectionTraits(patience, endpoint.tls is not None)
        return connection
    except MySQLdb.Error as error:
        raise server_error(login_error(error, endpoint), endpoint, side, begin) from error


def traits_of(connection: Any) -> ConnectionTraits | None:
    """Return how a connection of `connect` was made; None for a connection that something else made."""
    return _traits.get(connection)


def login_error(error: Exception, endpoint: Endpoint) -> Any:
    """Return the error that a login of either driver failed with.

    If the connection was lost during the login, a TLS handshake is made to find the server's reason, which is returned
    instead.
    """
    tls = endpoint.tls
    if tls is None or not tls.cert or error.args[:1] not in ((_GONE,), (_LOST,)):
        return error
    from unshard.mysql.tls import refusal

    told = refusal(endpoint.host, endpoint.port, tls)
    return type(error)(_TLS_FAULT, told) if told else error


def _encrypted(tls: Tls, options: dict[str, Any]) -> Any:
    from unshard.mysql.tls import encrypted

    return encrypted(tls, options)


def server_error(error: MySQLdb.Error, endpoint: Endpoint, side: Side, statement: str = "") -> UnshardError:
    """Return the catalogue's error for a driver error.

    The error shows the first 200 characters of `statement`, or else of the statement in the driver error's note.
    """
    kind = SourceError if side == "source" else TargetError
    place = {"host": endpoint.host, "port": endpoint.port, "user": endpoint.user}
    cause = f"{error.args[0]}: {error.args[1]}" if len(error.args) > 1 else str(error)
    failure = failure_of(error)
    code = _OTHER if side == "source" and failure in _AT_TARGET else _CODES.get(failure, _OTHER)
    told = statement or "".join(getattr(error, "__notes__", [])[:1])
    values: dict[str, Any] = {"statement": told[:200]} if code == _OTHER else place
    if failure is Failure.TLS:
        from unshard.mysql.tls_fault import tls_fault

        values |= asdict(tls_fault(cause))
    return kind(code.format(prefix=side.upper()), cause=cause, values=values)


@contextmanager
def session(endpoint: Endpoint, side: Side, *, patience_seconds: int = ROWS_SECONDS) -> Iterator[Any]:
    """Open a connection for queries, closed at the end. Driver errors are translated into errors of the catalogue."""
    connection = connect(endpoint, side, patience_seconds=patience_seconds)
    try:
        yield connection
    except MySQLdb.Error as error:
        raise server_error(error, endpoint, side) from error
    finally:
        connection.close()


def rows(connection: Any, statement: str, values: Sequence[Any] = ()) -> list[tuple[Any, ...]]:
    """Return all rows of one statement.

    Raises MySQLdb.Error with the statement as its note; `session` translates it.
    """
    with connection.cursor() as cursor:
        try:
            cursor.execute(statement, tuple(values) or None)
        except MySQLdb.Error as error:
            error.add_note(statement)
            raise
        return list(cursor.fetchall())


def _literal(value: str) -> str:
    if value.lstrip("-").isdigit():
        return value
    return quote_text(value)
