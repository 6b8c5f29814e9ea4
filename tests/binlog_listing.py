"""The events of a binlog file as `unshard binlog show` lists them, for tests that compare them with other tools'."""

from __future__ import annotations

from pathlib import Path

from unshard.binlog.format import read_format
from unshard.binlog.listing import Choice, Shown, list_events
from unshard.cli.binlog import name_statement
from unshard.errors import Where


def listed(path: Path) -> list[Shown]:
    """All events of a file that is closed. Raises BinlogError."""
    data = path.read_bytes()
    form = read_format(data, Where(file=str(path)))
    items = list_events(
        data,
        len(data),
        checksum=form.checksum,
        where=Where(file=str(path)),
        choice=Choice(),
        naming=lambda query: name_statement(query, form),
        growing=False,
    )
    return [item for item in items if isinstance(item, Shown)]
