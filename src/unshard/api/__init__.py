"""The values that master, worker and ctl send each other: stages, orders, statuses in DM's field names. No I/O."""
