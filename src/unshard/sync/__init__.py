"""The sync unit: follow the relay log and apply it exactly once."""
