"""The verbs of `unshard ctl`: each module turns the arguments of related verbs into requests.

| module | contents |
|---|---|
| `task` | check, start, stop, pause, resume, update, `query-status` |
| `source` | sources and their relays |
| `member` | members, the leader, the log level |
| `shard_ddl` | locks of sharding DDL |
| `binlog` | operators for positions of the binlog |
| `binlog_schema` | table structures at a position of the binlog |
| `validation` | continuous validation |
| `config` | configurations shown, exported and imported |
| `secret` | encrypted passwords, tokens |
"""
