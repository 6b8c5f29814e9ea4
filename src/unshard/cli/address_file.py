"""The file beside a run's log that says where its API is: `unshard ctl` in that folder finds the run by it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from unshard.ctl.runs import is_alive, named_in


@contextmanager
def address_in(file: Path, address: str) -> Iterator[None]:
    """Name `address` (HOST:PORT) in the file for as long; where another run is named there that lives, in one beside it
    with the port in its name."""
    if is_alive(named_in(file)):
        file = file.with_stem(f"{file.stem}.{address.rpartition(':')[2]}")
    file.write_text(f"{address}\n", encoding="utf-8")
    try:
        yield
    finally:
        if named_in(file) == address:
            file.unlink()
