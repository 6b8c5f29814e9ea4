"""How fast: our figures beside those of the usual tools, in the same call on the same machine."""

BENCHES = ("decode", "load", "sync", "latency", "scale", "backlog", "large", "shard_ddl", "failover")
