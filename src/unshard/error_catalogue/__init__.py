"""The error codes, each with its text, its remedy and whether a retry may help.

`docs/reference/errors.md` is generated from them. Texts are `str.format` templates over the `values` of an error.

| module | contents |
|---|---|
| `entry` | the form of one row |
| `ends` | config files, checks, the source, the target |
| `log` | the binlog and the relay log |
| `copy` | dump, load and comparisons |
| `follow` | changes of rows, checkpoints, operators |
| `statements` | DDL and operators' statements |
| `shard` | sharding DDL |
| `cluster` | ctl, master, worker and Spark |
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
