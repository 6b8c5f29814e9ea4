"""How the programs load what they consist of."""

from __future__ import annotations

import gc
import signal
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def loading() -> Iterator[None]:
    """Keep what is loaded meanwhile out of every garbage collection, also of later ones: it stays, and two hundred
    thousand objects are much to look through.

    Ctrl-C ends the process meanwhile as that signal ends any other, without a traceback: nothing has begun yet. For the
    main thread.
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
