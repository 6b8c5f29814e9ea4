"""What is looked at before a task starts: DM's pre-checks, by its names, each lack with what mends it."""
