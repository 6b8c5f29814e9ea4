"""The relay unit: the source's binlog files on disk, byte for byte.

One thread writes. Any number of readers follow. No file is deleted that a reader needs.

| module | contents |
|---|---|
| `start` | the position from which the relay goes on |
| `recovery` | recovery of the newest file after a crash |
| `unit` | the thread that receives the stream and writes it |
| `writer` | the writer of the relay log, which appends events to the files |
| `log` | the files, for their readers |
| `gtids` | the GTID set at the end of the relay log |
| `meta` | `server-uuid.index` and `relay.meta` |
| `folder_lock` | the lock of the folder |
| `backfill` | files from before the first one, fetched while others read |
| `purge` | the deletion of files that nobody needs |
"""
