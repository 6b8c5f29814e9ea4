"""What goes wrong while the DDL of merged tables is brought together."""

from __future__ import annotations

from unshard.error_catalogue.entry import Entry

SHARD: dict[str, Entry] = {}
