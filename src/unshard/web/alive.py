"""Finds out whether a process answers at all, before a request that may take long is put to it.

The kernel of a frozen process takes connections for it, and a silent host refuses none: only an answer is a sign.
"""

from __future__ import annotations

from collections.abc import Callable
from queue import Empty, Queue
from threading import Thread

import httpx

ALIVE_SECONDS = 2.0
"""How long an answer may take; its server gives it without a thread or a database."""

LOOK_SECONDS = 3.0
SILENT_LOOKS = 5
"""How often in a row a process that is at work on a request may give no sign of life."""

UNASKED = (httpx.ConnectError, httpx.ConnectTimeout, httpx.PoolTimeout)
"""Errors of a request that has not reached anybody."""


def silence_of(client: httpx.Client, seconds: float = ALIVE_SECONDS) -> str:
    """Return the reason why the process at the client's address gives no answer; "" where it gives one, of any kind.

    Nothing is asked of it, so that another one may be asked instead. Raises httpx.UnsupportedProtocol.
    """
    try:
        client.head("/", timeout=seconds)
    except httpx.TimeoutException:
        return f"no answer within {seconds:g} s"
    except (httpx.NetworkError, httpx.ProtocolError) as error:
        return str(error) or type(error).__name__
    return ""


def answer_of(
    client: httpx.Client,
    ask: Callable[[], httpx.Response],
    every: float = LOOK_SECONDS,
    most: int = SILENT_LOOKS,
    seconds: float = ALIVE_SECONDS,
) -> httpx.Response:
    """Return the response of `ask`, which sends a request by that client. The process is watched meanwhile.

    Raises the errors of `ask`; httpx.ReadTimeout where the process freezes meanwhile: the request may be under way.
    """
    told: Queue[httpx.Response | Exception] = Queue()

    def work() -> None:
        try:
            told.put(ask())
        except Exception as error:  # noqa: BLE001 - raised where it is waited for
            told.put(error)

    Thread(target=work, name="request", daemon=True).start()
    silent = 0
    while True:
        try:
            found = told.get(timeout=every)
        except Empty:
            silent = silent + 1 if silence_of(client, seconds) else 0
            if silent >= most:
                raise httpx.ReadTimeout("it has stopped to give any sign of life") from None
            continue
        if isinstance(found, Exception):
            raise found
        return found
