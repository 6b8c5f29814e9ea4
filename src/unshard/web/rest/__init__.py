"""DM's REST, `/api/v1`: its paths and field names onto the master's own methods."""
