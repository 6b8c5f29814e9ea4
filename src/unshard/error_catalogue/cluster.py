"""What goes wrong between master, worker and ctl."""

from __future__ import annotations

from unshard.error_catalogue.entry import Entry

CLUSTER: dict[str, Entry] = {}
