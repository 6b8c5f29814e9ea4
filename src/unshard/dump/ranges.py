"""Reads one table over several connections that have one snapshot: by key ranges, each into files of its own."""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any

import pyarrow as pa

from unshard.dump.metadata import DumpedFile
from unshard.dump.read import read_rows
from unshard.dump.write import FileLimits, raw_names, remove_parts, write_files
from unshard.model.table import Table

RANGES_A_READER = 4
"""Ranges for each connection: they have unlike numbers of rows, and a connection takes the next one."""


class _EndedError(Exception):
    """Raised in a thread in whose place another one has failed."""


def read_ranges(
    readers: Sequence[Any], table: Table, where: str, ranges: Sequence[str], parts: Path, limits: FileLimits
) -> list[DumpedFile]:
    """Write the rows of all ranges into files, which are returned in the order of the ranges; as `write.write_files`.

    Each reader is used by a thread of its own, which takes the next range that none has. After any error the
    connections are in doubt. Raises the first error.
    """
    waiting = iter(range(len(ranges)))  # threads may call `next` on it at once
    files: list[list[DumpedFile]] = [[] for _ in ranges]
    failed = Event()
    own = replace(limits, first_rows=0)  # the ranges make several files of a table that is not large
    raw = raw_names(table, limits.format)

    def batches(reader: Any, condition: str) -> Iterator[pa.RecordBatch]:
        for batch in read_rows(reader, table, (where, condition), raw=raw):
            if failed.is_set():
                raise _EndedError
            yield batch

    def read(reader: Any) -> None:
        try:
            for number in waiting:
                files[number] = write_files(parts, table, batches(reader, ranges[number]), own)
        except BaseException:
            failed.set()
            raise

    with ThreadPoolExecutor(len(readers), "read") as threads:
        ended = [threads.submit(read, reader).exception for reader in readers]
    errors = [error for error in (one() for one in ended) if error is not None]
    if errors:
        remove_parts(parts, itertools.chain(*files))
        raise next((error for error in errors if not isinstance(error, _EndedError)), errors[0])
    return list(itertools.chain(*files))
