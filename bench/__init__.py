"""Benchmarks: our figures beside those of the usual tools, in the same call on the same machine."""

BENCHES = (
    "decode",
    "load",
    "load_shapes",
    "sync",
    "latency",
    "scale",
    "backlog",
    "large",
    "many_tables",
    "many_schemas",
    "many_sources",
    "extremes",
    "cluster",
    "capacity",
    "ddl",
    "shard_ddl",
    "failover",
    "verify",
    "open_pages",
)
INTO_TIDB = frozenset({"load", "sync", "latency", "many_tables", "ddl", "verify"})
"""Benches that can have another target than MariaDB."""
SHARED: dict[str, dict[str, int]] = {
    "backlog": {"rows": 5_000_000},
    "load_shapes": {"percent": 100},
    "large": {"transaction_mb": 1_000, "backlog_mb": 8_000},
    "many_tables": {"tables": 1_000},
    "many_schemas": {"tables": 10_000},
    "many_sources": {"sources": 64, "simulated": 512},
    "extremes": {"wide_rows": 20_000, "large_rows": 20},
    "cluster": {"rows": 500_000},
    "verify": {"rows": 500_000, "transactions": 50_000},
    "open_pages": {"tables": 10_000},
    "capacity": {"rows": 200_000, "tables": 300, "shards": 10_000},
}
"""By bench, what `--share` multiplies, with its default."""
