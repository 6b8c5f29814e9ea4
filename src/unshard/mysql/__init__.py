"""What both ends share: connections, structures, types, quoting."""
