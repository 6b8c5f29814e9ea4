"""MySQL's protocol and dialect, for source and target alike: connections, structures, types, quoting."""
