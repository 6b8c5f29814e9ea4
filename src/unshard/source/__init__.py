"""The source server: snapshots and the replica stream. Nothing here changes a row of it."""
