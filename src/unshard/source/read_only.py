"""Makes a source refuse writes, by setting it read-only or by locking its tables, and undoes that.

A read-only source has `read_only` set, and `super_read_only` where the server has it. A locked source refuses writes
for a few seconds at most.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from threading import Event, Lock, Timer
from typing import Any

import MySQLdb

from unshard.mysql.connection import Endpoint, connect, rows, server_error

_NAMES = ("read_only", "super_read_only")
_WAIT_SECONDS = 30
_ON = frozenset({"1", "ON"})
_OFF = frozenset({"0", "OFF"})


def read_only_settings(connection: Any) -> dict[str, str]:
    """Return the values of `read_only` and `super_read_only`, by name, where the server has them.

    Raises MySQLdb.Error.
    """
    found = rows(connection, "SHOW GLOBAL VARIABLES WHERE Variable_name IN ('read_only', 'super_read_only')")
    return {str(name): str(value) for name, value in found}


def set_read_only(connection: Any) -> None:
    """Refuse writes from now on; waits for commits under way. Idempotent.

    Accounts that may change this variable can still write where there is no `super_read_only` (MariaDB). Raises
    MySQLdb.Error.
    """
    settings = read_only_settings(connection)
    rows(connection, f"SET SESSION lock_wait_timeout = {_WAIT_SECONDS}")
    for name in _NAMES:
        if settings.get(name, "ON") not in _ON and settings.get(name) not in ("NO_LOCK", "NO_LOCK_NO_ADMIN"):
            rows(connection, f"SET GLOBAL {name} = ON")


def statements_to_restore(settings: Mapping[str, str]) -> Iterator[str]:
    """Return statements that restore the variables; none where the source took no writes before either."""
    for name in reversed(_NAMES):  # read_only can't be off while super_read_only is on
        if name in settings and settings[name] not in _ON:
            yield f"SET GLOBAL {name} = {settings[name]}"


def statements_to_lift(settings: Mapping[str, str]) -> tuple[str, ...]:
    """Return the statements that let a source take writes which has these values; none where it takes them."""
    return tuple(f"SET GLOBAL {name} = OFF" for name in reversed(_NAMES) if settings.get(name, "OFF") not in _OFF)


def told_read_only(source: str, settings: Mapping[str, str]) -> Iterator[str]:
    """Yield a line about a source that had these values before a cut-over and refused writes."""
    if by_hand := statements_to_lift(settings):
        yield (
            f"{source}: was read-only before this cut-over, so --back leaves it so. If a cut-over from another folder,"
            f" or with another --state, has made it so, run --back there, or by hand: {'; '.join(by_hand)}"
        )


_LOCK_WAIT_SECONDS = 5
"""Longest wait for running statements: all writers wait behind the lock that is asked for."""


@contextmanager
def held_sources(endpoints: Sequence[Endpoint], seconds: float) -> Iterator[Event]:
    """Lock all tables of these servers for reading, until the end of the context, but no longer than `seconds`.

    The event that it gives is set once the locks are released. Raises SourceError where one can't be taken; none is
    held then.
    """
    released, guard = Event(), Lock()
    connections: list[Any] = []

    def release() -> None:
        with guard:
            released.set()
            for connection in connections:
                with suppress(MySQLdb.Error):
                    connection.close()
            connections.clear()

    timer = Timer(seconds, release)
    try:
        for endpoint in endpoints:
            connection = connect(endpoint, "source")
            connections.append(connection)
            try:
                rows(connection, f"SET SESSION lock_wait_timeout = {_LOCK_WAIT_SECONDS}")
                rows(connection, "FLUSH TABLES WITH READ LOCK")
            except MySQLdb.Error as error:
                raise server_error(error, endpoint, "source", "FLUSH TABLES WITH READ LOCK") from error
            if not timer.is_alive():
                timer.start()
        yield released
    finally:
        timer.cancel()
        release()
