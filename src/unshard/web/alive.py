"""Whether a process of the cluster answers at all: looked at before a request that may take long is put to it.

The kernel of a frozen process takes connections for it, and a host that has gone quiet refuses none: only an answer
tells.
"""

from __future__ import annotations

import httpx

ALIVE_SECONDS = 2.0
"""How long an answer may take; its server gives it without a thread or a database."""


def silence_of(client: httpx.Client, seconds: float = ALIVE_SECONDS) -> str:
    """Why the process at the client's address gives no answer; empty where it gives one, which may be any.

    Nothing is asked of it, so that another one may be asked instead. Raises httpx.UnsupportedProtocol.
    """
    try:
        client.head("/", timeout=seconds)
    except httpx.TimeoutException:
        return f"no answer within {seconds:g} s"
    except (httpx.NetworkError, httpx.ProtocolError) as error:
        return str(error) or type(error).__name__
    return ""
