"""The runs of this folder: each `unshard run` leaves a file beside its log that says where its API is."""

from __future__ import annotations

import re
import socket
from pathlib import Path

from unshard.errors import ClusterError

SUFFIX = ".addr"
_LOOPBACK = re.compile(r"(127(\.\d{1,3}){3}|localhost|\[::1\]):\d+")
_LONGEST = 256
"""Characters of such a file, with room to spare."""
_CONNECT_SECONDS = 2.0


def run_here() -> tuple[str, ...]:
    """The address of the run to ask; of several files the one whose run lives, for one that was killed leaves its own.

    None where no run has left one; all of them where no run lives any more. Raises ClusterError CLUSTER-047 where
    several live: the user has to say which is meant.
    """
    known = runs_here()
    if len(known) < 2:
        return tuple(known.values())
    living = {name: address for name, address in known.items() if is_alive(address)}
    if len(living) > 1:
        told = ", ".join(f"{address} ({name})" for name, address in living.items())
        raise ClusterError("CLUSTER-047", cause=f"several runs are in this folder; say which by --master-addr: {told}")
    return tuple((living or known).values())


def runs_here() -> dict[str, str]:
    """The addresses that runs have left in this folder, whether they live or not, by the names of the files.

    On loopback only: whoever may write to a folder should not get the tokens of those who work in it.
    """
    found = {file.name: named_in(file) for file in sorted(Path().glob(f"*{SUFFIX}"))}
    return {name: address for name, address in found.items() if _LOOPBACK.fullmatch(address)}


def named_in(file: Path) -> str:
    """The address that a file names; empty where there is no such file, or it is none that a run left."""
    if not file.is_file():
        return ""
    try:
        with file.open(encoding="utf-8") as text:
            return text.read(_LONGEST).strip()
    except (OSError, UnicodeDecodeError):
        return ""


def is_alive(address: str) -> bool:
    """Whether a process listens at an address as runs leave it, also a busy or frozen one; a killed one's refuses."""
    if not _LOOPBACK.fullmatch(address):
        return False
    host, _, port = address.rpartition(":")
    try:
        socket.create_connection((host.strip("[]"), int(port)), _CONNECT_SECONDS).close()
    except TimeoutError:
        return True
    except (OSError, OverflowError):
        return False
    return True
