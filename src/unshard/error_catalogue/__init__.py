"""The error codes, each with its text, its remedy and whether a retry may help.

One table, in the order of the data flow; `docs/reference/errors.md` is generated from it. Texts are
`str.format` templates over the `values` of an error.
"""

from __future__ import annotations

from unshard.error_catalogue.cluster import CLUSTER, ENGINE
from unshard.error_catalogue.copy import COMPARE, DUMP, LOAD
from unshard.error_catalogue.ends import CHECK, CONFIG, SOURCE, TARGET
from unshard.error_catalogue.entry import CatalogueEntry
from unshard.error_catalogue.follow import SYNC
from unshard.error_catalogue.log import BINLOG, RELAY
from unshard.error_catalogue.shard import SHARD
from unshard.error_catalogue.statements import DDL

CATALOGUE: dict[str, CatalogueEntry] = (
    CONFIG | CHECK | SOURCE | TARGET | BINLOG | RELAY | DUMP | LOAD | SYNC | DDL | SHARD | COMPARE | CLUSTER | ENGINE
)

__all__ = ["CATALOGUE", "CatalogueEntry"]
