"""How the programs that stay load what they consist of."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def loading() -> Iterator[None]:
    """Keep what is loaded meanwhile out of every garbage collection, also of later ones: it stays, and two hundred
    thousand objects are much to look through."""
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
