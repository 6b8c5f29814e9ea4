"""Rules that filter, route and map rows and names. Pure.

| module | contents |
|---|---|
| `source_rules` | all rules of a source that look at table names only |
| `pattern` | names of schemas and tables matched against patterns |
| `block_allow` | the block-allow list |
| `online_tables` | helper tables of gh-ost and pt-online-schema-change |
| `event_filter` | the binlog event filter |
| `row_filter` | the interface of row filters, and that of the binlog event filter |
| `expressions` | expression filters |
| `route` | the route of a source table |
| `column_mapper` | selects the column mapping of a table |
| `column_mapping` | the column mapping of a table, applied |
| `extract` | columns filled from the names of a source |
| `latest_time` | TIME beyond the range of MySQL and TiDB, clamped |
| `sql_literals` | values of a column as SQL literals |
"""
