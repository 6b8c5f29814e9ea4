"""The output of a run that goes on where its lines can't be written: on a full disk, to a reader that is gone."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any, TextIO, cast

from unshard.log import logger


class Output:
    """A stream that drops what can't be written to `stream`, and logs that once; None drops everything.

    Each write is tried: a disk may have room again. Until then the stream's buffer keeps some kilobytes of whole lines.
    """

    def __init__(self, stream: TextIO | None) -> None:
        self._stream = stream
        self._told = False

    def write(self, text: str) -> int:
        """Write the text, or drop it. Return its length."""
        try:
            if self._stream is not None:
                self._stream.write(text)
        except OSError as error:
            self._tell(error)
        return len(text)

    def flush(self) -> None:
        """Flush the stream, if that is possible."""
        try:
            if self._stream is not None:
                self._stream.flush()
        except OSError as error:
            self._tell(error)

    def __getattr__(self, name: str) -> Any:
        """Return an attribute of the stream, such as its encoding."""
        return getattr(self._stream, name)

    def _tell(self, error: OSError) -> None:
        if not self._told:
            self._told = True
            stream = str(getattr(self._stream, "name", "")).strip("<>")
            log = logger("run")
            log.warning("output can't be written; the run goes on without", stream=stream, error=str(error))


@contextmanager
def output_to(stream: TextIO | None) -> Iterator[TextIO]:
    """Yield an output to the stream. At the end, what can't be written is discarded: it would fail the exit."""
    try:
        yield cast(TextIO, Output(stream))
    finally:
        if stream is not None:
            try:
                stream.flush()
            except OSError:
                discard(stream.fileno())


def discard(number: int) -> None:
    """Discard what is printed to a file descriptor from here on."""
    nowhere = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, number)
    os.close(nowhere)
