"""Values that every part shares: positions, GTID sets, tables, row changes. No I/O, no connections."""
