"""The values that all packages share: positions, GTID sets, tables, row changes. No I/O, no connections.

| module | contents |
|---|---|
| `position` | binlog positions and locations |
| `gtid` | sets of GTIDs, MariaDB's and MySQL's |
| `table` | tables: names, columns, indexes |
| `shape` | whether a table keeps every value of another one's rows |
| `change` | the operations of row changes, and the Arrow fields of row images |
| `progress` | the progress of the dump and the load |
| `stored_form` | the version of the JSON records in a target |
"""
