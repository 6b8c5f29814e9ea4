"""The checks before a task starts: DM's pre-checks, under DM's names. Each finding says how to fix the problem."""
