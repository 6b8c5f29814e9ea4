"""Imports the modules of a command with the garbage collector off; Ctrl-C meanwhile ends the process at once."""

from __future__ import annotations

import gc
import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def loading() -> Iterator[None]:
    """Exclude the objects that are loaded meanwhile from every later garbage collection.

    They stay for the life of the process, and two hundred thousand objects take long to look through. Meanwhile Ctrl-C
    ends the process without a traceback: nothing has begun yet. For the main thread.
    """
    heeded = signal.getsignal(signal.SIGINT) is signal.default_int_handler
    if heeded:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    gc.disable()
    try:
        yield
    finally:
        gc.freeze()
        gc.enable()
        if heeded:
            signal.signal(signal.SIGINT, signal.default_int_handler)
