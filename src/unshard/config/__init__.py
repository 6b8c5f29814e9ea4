"""What the user writes: task and source files in DM's format, read strictly."""
