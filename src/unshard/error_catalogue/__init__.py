"""The error codes, each with its text, its remedy and whether a retry may help.

`docs/reference/errors.md` is generated from them. Texts are `str.format` templates over the `values` of an error.

| module | contents |
|---|---|
| `entry` | the form of one row |
| `config` | config files and checks: CONFIG, CHECK |
| `source` | the source's server: SOURCE |
| `relay` | the relay log: RELAY |
| `binlog` | the bytes of a binlog: BINLOG |
| `dump` | the dump: DUMP |
| `load` | the load: LOAD |
| `sync` | changes of rows, checkpoints, operators: SYNC |
| `ddl` | DDL and operators' statements: DDL |
| `shard` | sharding DDL: SHARD |
| `target` | the target's server: TARGET |
| `compare` | comparisons: COMPARE |
| `cluster` | ctl, master and worker: CLUSTER |
| `engine` | Spark: ENGINE |
"""

from __future__ import annotations

from unshard.error_catalogue.binlog import BINLOG
from unshard.error_catalogue.cluster import CLUSTER
from unshard.error_catalogue.compare import COMPARE
from unshard.error_catalogue.config import CHECK, CONFIG
from unshard.error_catalogue.ddl import DDL
from unshard.error_catalogue.dump import DUMP
from unshard.error_catalogue.engine import ENGINE
from unshard.error_catalogue.entry import CatalogueEntry
from unshard.error_catalogue.load import LOAD
from unshard.error_catalogue.relay import RELAY
from unshard.error_catalogue.shard import SHARD
from unshard.error_catalogue.source import SOURCE
from unshard.error_catalogue.sync import SYNC
from unshard.error_catalogue.target import TARGET

CATALOGUE: dict[str, CatalogueEntry] = (
    CONFIG | CHECK | SOURCE | TARGET | BINLOG | RELAY | DUMP | LOAD | SYNC | DDL | SHARD | COMPARE | CLUSTER | ENGINE
)

__all__ = ["CATALOGUE", "CatalogueEntry"]
