"""Which sources are one and the same server, whatever their addresses are."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from secrets import token_hex

from unshard.errors import UnshardError
from unshard.mysql.connection import Endpoint, rows, session
from unshard.mysql.flavour import Server, identify

AT_ONCE = 8
"""Most servers that are asked at a time who they are."""


def of_one_server(sources: Mapping[str, tuple[Endpoint, Server]]) -> tuple[tuple[str, ...], ...]:
    """The names of those that are one server, where there are several of it. Asks those whose ids are alike.

    What a server tells of itself may be a copy (a cloned disk), or what all have by default (MariaDB). A lock that one
    connection holds and another one sees is of one server. None of one that knows no such locks (old TiDB).
    """
    alike: dict[object, list[str]] = defaultdict(list)
    for name, (_, server) in sources.items():
        alike[server.flavour, server.uuid, server.server_id].append(name)
    found = []
    for group in alike.values():
        left = group
        while len(left) > 1:
            first, *others = left
            same = _seen_from(sources[first][0], {name: sources[name][0] for name in others})
            if same:
                found.append((first, *same))
            left = [name for name in others if name not in same]
    return tuple(found)


def one_server_among(endpoints: Mapping[str, Endpoint]) -> tuple[tuple[str, ...], ...]:
    """The same of addresses, as far as they answer."""
    with ThreadPoolExecutor(AT_ONCE, "one server") as pool:
        servers = list(pool.map(_identified, endpoints.values()))
    found = zip(endpoints, endpoints.values(), servers, strict=True)
    return of_one_server({name: (endpoint, server) for name, endpoint, server in found if server is not None})


def _identified(endpoint: Endpoint) -> Server | None:
    with suppress(UnshardError), session(endpoint, "source") as connection:
        return identify(connection)
    return None


def _seen_from(endpoint: Endpoint, others: Mapping[str, Endpoint]) -> Iterable[str]:
    lock = f"unshard-{token_hex(16)}"
    same: list[str] = []
    with suppress(UnshardError), session(endpoint, "source") as holder:
        rows(holder, "SELECT GET_LOCK(%s, 0)", (lock,))
        for name, other in others.items():
            with session(other, "source") as connection:
                ((seen_by,),) = rows(connection, "SELECT IS_USED_LOCK(%s)", (lock,))
            if seen_by is not None:
                same.append(name)
    return same
