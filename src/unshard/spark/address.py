"""The URL of a Spark master, and the checks before a session: something listens there, and Java is installed.

Pure, except for `check_reachable` and `check_java`.
"""

from __future__ import annotations

import os
import re
import shutil
import socket
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path

from unshard.config.redact import is_secret
from unshard.errors import EngineError

REMOTE = "sc://"
_CONNECT_PORT = 15002
_REACH_SECONDS = 10.0
_LOCAL = re.compile(r"local(?:\[(\d+|\*)(?:,\s*\d+)?\])?$")
_PLACES = re.compile(r"(spark|sc)://([^/;?]+)")
_LOOPBACK = ("127.", "localhost", "[::1]")


def is_remote(master: str) -> bool:
    """Return whether the URL is that of a Spark Connect server."""
    return master.startswith(REMOTE)


def local_slots(master: str) -> int:
    """Return how many tasks a `local[…]` master runs at a time; 0 for a cluster's master."""
    found = _LOCAL.match(master)
    if found is None:
        return 0
    return (os.cpu_count() or 1) if found[1] == "*" else int(found[1] or 1)


def is_loopback(master: str) -> bool:
    """Return whether the executors are on this machine, so that nothing has to listen beyond it."""
    places = list(_places(master))
    return bool(local_slots(master)) or (bool(places) and all(host.startswith(_LOOPBACK) for host, _ in places))


def shown(master: str) -> str:
    """Return the URL without its parameters, which may contain a token."""
    return master.split(";")[0].rstrip("/") if is_remote(master) else master


def without_secrets(text: str, master: str, conf: Mapping[str, str]) -> str:
    """Return a message in which the URL's parameters and the secrets of the settings are hidden."""
    secrets = [pair.partition("=")[2] for pair in master.split(";")[1:]]
    secrets += [value for name, value in conf.items() if is_secret(name)]
    for secret in sorted(filter(None, secrets), key=len, reverse=True):
        text = text.replace(secret, "******")
    return text


def check_reachable(master: str) -> None:
    """Raise EngineError ENGINE-004 if nothing listens at any address of the URL. Spark itself would try for a minute.

    A `local`, `yarn` or `k8s://` master is not checked.
    """
    reasons = []
    for host, port in _places(master):
        try:
            with socket.create_connection((host.strip("[]"), port), _REACH_SECONDS):
                return
        except OSError as error:
            reasons.append(f"{host}:{port}: {error.strerror or error}")
    if reasons:
        raise EngineError("ENGINE-004", cause="; ".join(reasons), values={"master": shown(master)})


def _places(master: str) -> Iterator[tuple[str, int]]:
    found = _PLACES.match(master)
    for place in found[2].split(",") if found else ():
        host, colon, port = place.rpartition(":")
        with suppress(ValueError):
            yield (host, int(port)) if colon else (place, _CONNECT_PORT)


def check_java(master: str) -> None:
    """Raise EngineError ENGINE-012 if Spark's driver is to run here and there is no Java. Starts no process."""
    home = os.environ.get("JAVA_HOME")
    if is_remote(master):
        return
    if home:
        if shutil.which(str(Path(home) / "bin" / "java")) is None:
            raise EngineError("ENGINE-012", cause=f"JAVA_HOME is {home}, and there is no program bin/java in it")
    elif shutil.which("java") is None:
        raise EngineError("ENGINE-012", cause="no folder of PATH has a program java, and JAVA_HOME is not set")
