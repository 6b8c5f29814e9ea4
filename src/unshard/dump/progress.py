"""The progress of a dump, table by table: records of finished tables, and the parts of unfinished ones."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

from unshard.dump.files import mark_of, stem, told_by_part
from unshard.dump.metadata import DumpedFile, DumpHeader
from unshard.model.progress import CopyStage, TableProgress
from unshard.model.table import TableName

Records = Mapping[str, Sequence[DumpedFile]]
"""The files of the finished tables, by the name of the record."""


def table_progress(header: DumpHeader, records: Records, parts: Path, since: float) -> tuple[TableProgress, ...]:
    """Return one entry for each table of the dump.

    Parts older than `since` (unix time) are of an attempt that has died.
    """
    finished = {file.part for files in records.values() for file in files}
    growing = _growing(parts, finished, since)
    return tuple(_table(name, header, records, growing) for name in header.tables)


def _growing(parts: Path, finished: set[str], since: float) -> dict[str, tuple[int, int]]:
    """Return rows and bytes of the parts of unfinished tables, by mark."""
    found: dict[str, tuple[int, int]] = {}
    with suppress(FileNotFoundError):  # the folder is made anew when a dump starts over
        for name in set(os.listdir(parts)) - finished:
            with suppress(FileNotFoundError):  # renamed or removed between listing and looking
                seen = (parts / name).stat()
                if seen.st_mtime >= since:
                    mark, rows = told_by_part(name)
                    before = found.get(mark, (0, 0))
                    found[mark] = before[0] + rows, before[1] + seen.st_size
    return found


def _table(
    name: TableName, header: DumpHeader, records: Records, growing: Mapping[str, tuple[int, int]]
) -> TableProgress:
    key = stem(name)
    files = records.get(f"{key}.json")
    if files is not None:
        rows = sum(file.rows for file in files)
        return TableProgress(name, CopyStage.DUMPED, rows, rows, sum(file.size for file in files))
    about = header.estimates.get(key)
    here = growing.get(mark_of(name)) if growing else None
    if here is None:
        return TableProgress(name, CopyStage.WAITING, rows_about=about)
    rows, size = here
    return TableProgress(name, CopyStage.DUMPING, rows, None if about is None else max(about, rows), size)
