"""Binlog bytes to an index and to row images. Opens no socket.

| module | contents |
|---|---|
| `events` | the table of all event types, and how each is handled |
| `event_kinds` | the kind of each event code, as the kernels distinguish them |
| `headers` | the walk over single events, and the format event at the start of a file |
| `index` | the walk over whole transactions, which decides what a batch may contain |
| `groups` | where groups begin and end, and their GTIDs, by the headers alone |
| `gtids` | GTIDs as text for the index |
| `query` | the body of QUERY events |
| `query_kind` | the kind of a QUERY event, by its statement |
| `xa` | XA transactions: the prepare, and the commit or rollback |
| `payload` | compressed events |
| `transaction_range` | the result of the scan: a range of whole transactions, and where it may be cut |
| `table_map` | TABLE_MAP events |
| `table_metadata` | the optional fields of a TABLE_MAP event |
| `described` | a table's structure as its TABLE_MAP alone describes it |
| `layout` | the layout of each column's values in a row image |
| `reading` | where two structures of a table read its row events differently |
| `rows` | the row events of a byte range as Arrow record batches |
| `images` | row images that lack columns |
| `columns` | the Arrow array of a column, made of the kernel's buffers |
| `json_diff` | partial updates of JSON documents |
| `contents` | the fields in the body of each event type, for display |
| `row_changes` | the changes of one row event, for a reader |
| `listing` | the events of a file as `unshard binlog show` lists them |
"""
