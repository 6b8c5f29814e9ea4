"""Finds out which sources are one server, whatever their addresses are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from secrets import token_hex
from typing import Any

import MySQLdb

from unshard.errors import UnshardError
from unshard.mysql.connection import Endpoint, rows, session
from unshard.mysql.flavour import Server, identify

AT_ONCE = 8
"""The most servers that are asked at a time for their identity."""


def of_one_server(sources: Mapping[str, tuple[Endpoint, Server]]) -> tuple[tuple[str, ...], ...]:
    """Return groups of names of sources that are one server. Only servers with equal ids are asked.

    Equal ids prove nothing: they may be a copy (a cloned disk) or a default (MariaDB). Two connections reach one server
    if the one sees a lock that the other holds. A server without such locks (old TiDB) is in no group.
    """
    alike: dict[object, list[str]] = defaultdict(list)
    for name, (_, server) in sources.items():
        alike[server.flavour, server.uuid, server.server_id].append(name)
    found = []
    for group in alike.values():
        seen = _locks_seen({name: sources[name][0] for name in group}) if len(group) > 1 else {}
        left = group
        while len(left) > 1:
            first, *others = left
            same = [name for name in others if first in seen.get(name, ())]
            if same:
                found.append((first, *same))
            left = [name for name in others if name not in same]
    return tuple(found)


def one_server_among(endpoints: Mapping[str, Endpoint]) -> tuple[tuple[str, ...], ...]:
    """Return the same as `of_one_server` for addresses. Servers that do not answer are left out."""
    with ThreadPoolExecutor(AT_ONCE, "one server") as pool:
        servers = list(pool.map(_identified, endpoints.values()))
    found = zip(endpoints, endpoints.values(), servers, strict=True)
    return of_one_server({name: (endpoint, server) for name, endpoint, server in found if server is not None})


def _identified(endpoint: Endpoint) -> Server | None:
    with suppress(UnshardError), session(endpoint, "source") as connection:
        return identify(connection)
    return None


def _locks_seen(endpoints: Mapping[str, Endpoint]) -> dict[str, frozenset[str]]:
    """Return, by name, the sources whose locks it sees while each holds one.

    Opens one connection to each, however many there are.
    """
    locks = {name: f"unshard-{token_hex(16)}" for name in endpoints}
    asked = "SELECT " + ", ".join(["IS_USED_LOCK(%s) IS NOT NULL"] * len(locks))
    held: dict[str, Any] = {}
    seen: dict[str, frozenset[str]] = {}
    with ExitStack() as connections, ThreadPoolExecutor(AT_ONCE, "one server") as threads:

        def hold(name: str) -> None:
            with suppress(UnshardError, MySQLdb.Error):
                connection = connections.enter_context(session(endpoints[name], "source"))
                rows(connection, "SELECT GET_LOCK(%s, 0)", (locks[name],))
                held[name] = connection

        def look(name: str) -> None:
            with suppress(MySQLdb.Error):
                (answers,) = rows(held[name], asked, tuple(locks.values()))
                seen[name] = frozenset(other for other, there in zip(locks, answers, strict=True) if there)

        list(threads.map(hold, endpoints))
        list(threads.map(look, held))
    return seen
