"""Sets up the session in which a statement runs on the target, with the upstream settings that affect its result."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any
from weakref import WeakKeyDictionary

import MySQLdb

from unshard.ddl.context import Context
from unshard.ddl.cursor import tokens_of
from unshard.ddl.fractions import mode_for_fractions
from unshard.ddl.lost_modes import kept_modes
from unshard.ddl.names import names_charset_alone
from unshard.ddl.statement import StatementKind
from unshard.ddl.zones import session_zone
from unshard.errors import DdlError, Where
from unshard.mysql.collations import charset_of, collation_of
from unshard.mysql.connection import rows
from unshard.mysql.failures import ends_connection
from unshard.mysql.tidb import is_tidb

UNKNOWN_COLLATION = frozenset({1273, 1115})
_NOT_GRANTED = 1227
_ADDS, _INSISTS = "sql_generate_invisible_primary_key", "sql_require_primary_key"
_HISTORY = "system_versioning_alter_history"
_COLLATIONS, _OF_UTF8MB4 = "character_set_collations", "default_collation_for_utf8mb4"
"""Variables of MariaDB and MySQL that replace the default collations with which the server was built."""
_OF_TIMESTAMPS = frozenset({"TIMESTAMP", "SELECT"})
"""Words without one of which a statement makes no TIMESTAMP column.

`explicit_defaults_for_timestamp` is then left as it is, for before 10.8 MariaDB has it for the whole server only.
"""
_OF_TIME = frozenset({"PARTITION", "SELECT", "INTERVAL", "SYSTEM_TIME", "VERSIONING"})
_CHARSET_WORDS = frozenset({"CHARSET", "CHARACTER", "COLLATE"})
_UTF8MB4_DEFAULTS = ("utf8mb4_general_ci", "utf8mb4_0900_ai_ci")
"""The default collations of utf8mb4 that MySQL accepts; the first is what servers used that don't log it."""

Value = str | int | float

_variables_there: WeakKeyDictionary[Any, dict[str, str]] = WeakKeyDictionary()
_collation_names: WeakKeyDictionary[Any, dict[int, str]] = WeakKeyDictionary()
"""What a connection's server was asked once; it doesn't change while the connection lives."""

NEUTRAL: Mapping[str, Value] = {
    "sql_mode": "ALLOW_INVALID_DATES",
    "time_zone": "+00:00",
    "foreign_key_checks": 0,
}
"""A session for SHOW CREATE TABLE and for running what it printed: backticks, all options, nothing strict."""


@contextmanager
def neutral_session(connection: Any) -> Iterator[None]:
    """Set the variables of `NEUTRAL` and `printed_collations`; the old values are set again at the end."""
    with _variables(connection, {**NEUTRAL, **printed_collations(connection)}):
        yield


def printed_collations(connection: Any) -> dict[str, Value]:
    """Return the variables with which a statement that SHOW CREATE printed means the collations of its server.

    Only MySQL before 8.0 and MariaDB before MDEV-29446 (2022) leave a collation out: the default of its character set,
    as they were built. MySQL 8.0 has another one for utf8mb4, MariaDB 11.5 for all Unicode character sets. Statements
    for TiDB name every collation.
    """
    there = {} if is_tidb(connection) else _there(connection)
    values = {_COLLATIONS: "", _OF_UTF8MB4: _UTF8MB4_DEFAULTS[0]}
    return {name: value for name, value in values.items() if name in there}


@contextmanager
def event_session(connection: Any, context: Context, kind: StatementKind, statement: str) -> Iterator[None]:
    """Set the session of the statement's event, without strictness and foreign key checks; undone at the end.

    NOW() gives the event's time. The text itself is sent as utf8mb4. For an unknown `collation_connection` the session
    keeps its own: it affects literals only. Raises DdlError as `session_zone`, `kept_modes` and `mode_for_fractions`,
    and DDL-010 where the statement relies on a default collation that the target lacks: that of a new schema, or that
    of a character set which it names without a collation.
    """
    wanted: dict[str, Value] = {
        "sql_mode": ",".join(
            (*kept_modes(connection, context, statement), *mode_for_fractions(connection, context, statement))
        ),
        "time_zone": session_zone(connection, context, statement),
        "foreign_key_checks": 0,
    }
    if context.timestamp:
        wanted["timestamp"] = context.timestamp
    if is_tidb(connection):  # its statements name all that a session could decide, except what expressions mean
        with _variables(connection, {**wanted, "tidb_allow_remove_auto_inc": 1}):
            yield
        return
    found = tokens_of(statement, context)
    words = {token.word for token in found}
    if context.explicit_defaults_for_timestamp is not None and words & _OF_TIMESTAMPS:
        wanted["explicit_defaults_for_timestamp"] = int(context.explicit_defaults_for_timestamp)
    if context.sql_if_exists:
        wanted["sql_if_exists"] = 1
    if (name := collation_name(connection, context.collation_connection)) is not None:
        wanted["collation_connection"] = name
    if kind.on_schema and context.collation_server:
        name = collation_name(connection, context.collation_server)
        if name is not None:
            wanted["collation_server"] = name
        elif not _CHARSET_WORDS & words:
            values = {"statement": statement, "collation": context.collation_server}
            raise DdlError("DDL-010", context.where, values=values)
    for number in context.default_collations:
        name = collation_of(number)
        if names_charset_alone(found, charset_of(number)) and collation_name(connection, number) is None:
            raise DdlError("DDL-010", context.where, values={"statement": statement, "collation": name})
    wanted |= _own_of_target(connection, context)
    with _variables(connection, wanted):
        yield


def deciding(context: Context, statement: str) -> tuple[Context, frozenset[str]]:
    """Return the values that decide `event_session` and the statement's outcome on the session.

    They are equal for equal outcomes. The time matters where a structure can have it: in the first period of a
    history's partitions, in computed rows.
    """
    words = {token.word for token in tokens_of(statement, context)}
    timestamp = context.timestamp if words & _OF_TIME else 0.0
    deciding_words = frozenset(words & (_OF_TIMESTAMPS | _CHARSET_WORDS))
    return replace(context, where=Where(), schema="", timestamp=timestamp), deciding_words


@contextmanager
def plain_tables(connection: Any, *, needed: bool = True) -> Iterator[None]:
    """Set a session in which a MySQL target adds no key of its own (`my_row_id`) to a table without one.

    Raises DdlError DDL-036 where the account may not have such a session, unless it is not `needed`.
    """
    with ExitStack() as stack:
        try:
            stack.enter_context(_variables(connection, _no_generated_key(_there(connection))))
        except MySQLdb.Error as error:
            if not error.args or error.args[0] != _NOT_GRANTED:
                raise
            if needed:
                raise DdlError("DDL-036", cause=": ".join(map(str, error.args))) from error
        yield


@contextmanager
def copied_tables(connection: Any, create_sqls: Iterable[str]) -> Iterator[None]:
    """Apply `plain_tables` for the copy, which tables without a key need.

    A target with `sql_require_primary_key` adds keys: rows of such a table are written without regard to the added key.
    Raises as `plain_tables` does.
    """
    if _there(connection).get(_INSISTS) == "ON":
        yield
        return
    with plain_tables(connection, needed=any("PRIMARY KEY" not in text.upper() for text in create_sqls)):
        yield


def _own_of_target(connection: Any, context: Context) -> dict[str, Value]:
    """Return values for variables that only some servers have."""
    there = _there(connection)
    names = [name for number in context.default_collations if (name := collation_name(connection, number))]
    wanted = _no_generated_key(there)
    if context.mariadb and _HISTORY in there:
        wanted[_HISTORY] = "KEEP"  # else an ALTER of a system-versioned table is refused
    if _COLLATIONS in there:  # MariaDB, set to others than it was built with
        wanted[_COLLATIONS] = ",".join(f"{name.partition('_')[0]}={name}" for name in names)
    if _OF_UTF8MB4 in there:
        wanted[_OF_UTF8MB4] = next((name for name in names if name in _UTF8MB4_DEFAULTS), _UTF8MB4_DEFAULTS[0])
    return wanted


def _there(connection: Any) -> dict[str, str]:
    """Return the variables that not every target has, with the values of the connection's beginning."""
    if connection not in _variables_there:
        names = (_COLLATIONS, _OF_UTF8MB4, _HISTORY, _ADDS, _INSISTS)
        listed = ", ".join(map(repr, names))
        found = rows(connection, f"SHOW SESSION VARIABLES WHERE Variable_name IN ({listed})")
        _variables_there[connection] = dict(found)
    return _variables_there[connection]


def _no_generated_key(there: Mapping[str, str]) -> dict[str, Value]:
    return {_ADDS: 0} if _ADDS in there else {}


def collation_name(connection: Any, number: int) -> str | None:
    """Return the target's name of the collation with that id; None for 0 and for an id that the target doesn't have."""
    if not number:
        return None
    known = _collation_names.setdefault(connection, {})
    if number not in known and (name := _asked_name(connection, number)) is not None:
        known[number] = name
    return known.get(number)


def _asked_name(connection: Any, number: int) -> str | None:
    found = rows(connection, "SELECT COLLATION_NAME FROM information_schema.COLLATIONS WHERE ID = %s", (number,))
    if found:
        return str(found[0][0])
    try:  # MariaDB's newer collations stand for several character sets and have no id in that list
        with _variables(connection, {"collation_connection": number}):
            return str(rows(connection, "SELECT @@session.collation_connection")[0][0])
    except MySQLdb.Error as error:
        if error.args and error.args[0] in UNKNOWN_COLLATION:
            return None
        raise


@contextmanager
def _variables(connection: Any, wanted: Mapping[str, Value]) -> Iterator[None]:
    """Set the variables whose value differs and set them back at the end: some need a privilege to be set at all."""
    names = [name for name in wanted if name != "timestamp"]
    ((*found,),) = rows(connection, "SELECT " + ", ".join(f"@@{name}" for name in names)) if names else ((),)
    before = {name: value for name, value in zip(names, found, strict=True) if value != wanted[name]}
    _set(connection, {name: value for name, value in wanted.items() if name in before or name == "timestamp"})
    try:
        yield
    except MySQLdb.Error as error:
        if not ends_connection(error):
            _restore(connection, before, wanted)
        raise
    except BaseException:
        _restore(connection, before, wanted)
        raise
    _restore(connection, before, wanted)


def _restore(connection: Any, before: Mapping[str, Any], wanted: Mapping[str, Value]) -> None:
    _set(connection, before)
    if "timestamp" in wanted:
        with connection.cursor() as cursor:
            cursor.execute("SET SESSION timestamp = DEFAULT")


def _set(connection: Any, variables: Mapping[str, Any]) -> None:
    if not variables:
        return
    with connection.cursor() as cursor:
        cursor.execute(
            "SET " + ", ".join(f"@@session.{name} = %s" for name in variables),
            tuple(variables.values()),
        )
