"""The verbs of `unshard ctl`: each module turns the arguments of related verbs into requests.

| module | contents |
|---|---|
| `task` | check, start, stop, pause, resume, update, `query-status` |
| `cluster` | sources, relays, members, the leader, the log level |
| `config` | configurations shown, exported and imported; encrypted passwords, tokens |
| `shard_ddl` | locks of sharding DDL |
| `binlog` | operators for positions of the binlog; table structures |
| `validation` | continuous validation |
"""
