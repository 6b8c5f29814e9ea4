"""The file beside a run's log that says where its API is: `unshard ctl` in that folder finds the run by it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from unshard.web.alive import silence_of


@contextmanager
def address_in(file: Path, address: str) -> Iterator[None]:
    """Name `address` (HOST:PORT) in the file for as long, unless another run is named there that lives."""
    if not _lives(_named(file)):
        file.write_text(f"{address}\n", encoding="utf-8")
    try:
        yield
    finally:
        if _named(file) == address:
            file.unlink()


def _named(file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8").strip()
    except FileNotFoundError:
        return ""


def _lives(address: str) -> bool:
    if not address:
        return False
    try:
        with httpx.Client(base_url=f"http://{address}") as client:
            return not silence_of(client)
    except (httpx.UnsupportedProtocol, httpx.InvalidURL):
        return False
