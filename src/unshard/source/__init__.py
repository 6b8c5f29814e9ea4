"""The source server: snapshots and the replica stream. Nothing here changes a row.

| module | contents |
|---|---|
| `requirements` | the settings and privileges without which a binlog can't be followed |
| `snapshot` | consistent snapshots, each with its binlog location |
| `exact_positions` | confirmation of the positions that snapshots report |
| `upstream` | the newest location of a binlog |
| `position_at` | the first transaction at or after a point in time |
| `log_since` | whether a part of the binlog has anything for a task |
| `local_time` | the conversion of a source's local times to UTC |
| `system_zone` | the time zone of a server's host |
| `replica_protocol` | the messages of the replica protocol |
| `replica` | the replica stream as runs of checked events |
| `prepared_transactions` | the XA transactions that are prepared |
| `read_only` | sources that are made to refuse writes |
"""
