"""The checks before a task starts: DM's pre-checks, under DM's names. Each finding has a remedy.

| module | contents |
|---|---|
| `facts` | everything that is read from the servers, once, before the first check |
| `start_position` | whether a task can start at the position of its `meta` |
| `records` | how the sources will start, read from the target |
| `run` | the list of checks, and its run |
| `server` | versions, settings of the binlog, numbers of connections |
| `privileges` | the privileges of the accounts |
| `tables` | structures, keys, foreign keys, triggers, leftovers of online DDL |
| `differences` | differences between a source's table and the target's |
| `partitions` | partitions that may have other rows on the target |
| `shards` | merged tables: one structure, and keys that don't clash |
| `rules` | rules that match no table; tables that two sources take |
| `losses` | losses and alterations of values |
| `zones` | generated columns and a `where` that depend on the time zone of sessions |
| `tidb` | features that a TiDB target lacks |
| `limits` | tables and values that exceed the limits of the target |
| `replication` | whether a source replicates without logging what it applies |
| `result` | the results: findings |
| `grouped` | findings grouped by problem and remedy |
"""
