"""How fast: our figures beside those of the usual tools, in the same call on the same machine."""

BENCHES = (
    "decode",
    "load",
    "sync",
    "latency",
    "scale",
    "backlog",
    "large",
    "many_tables",
    "ddl",
    "shard_ddl",
    "failover",
)
INTO_TIDB = frozenset({"load", "sync", "latency", "many_tables", "ddl"})
"""Those that take another target than MariaDB."""
