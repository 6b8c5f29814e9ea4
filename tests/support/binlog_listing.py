"""The events of a binlog file as `unshard binlog show` lists them, and the codes of what a server wrote."""

from __future__ import annotations

from pathlib import Path

from unshard.binlog.headers import headers, read_format
from unshard.binlog.listing import ListingRange, Shown, list_events
from unshard.cli.binlog import name_statement
from unshard.errors import Where
from unshard.testing.throwaway_server import ThrowawayServer


def listed(path: Path) -> list[Shown]:
    """All events of a file that is closed. Raises BinlogError."""
    data = path.read_bytes()
    form = read_format(data, Where(file=str(path)))
    items = list_events(
        data,
        len(data),
        checksum=form.checksum,
        where=Where(file=str(path)),
        choice=ListingRange(),
        naming=lambda query: name_statement(query, form),
        growing=False,
    )
    return [item for item in items if isinstance(item, Shown)]


def newest_codes(server: ThrowawayServer) -> set[int]:
    """The codes of the events in the server's newest binlog."""
    data = server.binlog_files()[-1].read_bytes()
    found = headers(data, len(data), checksum=read_format(data).checksum, where=Where())
    return {header.code for header in found}
