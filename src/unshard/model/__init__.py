"""Values that all packages share: positions, GTID sets, tables, row changes. No I/O, no connections."""
