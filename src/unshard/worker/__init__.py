"""A worker's side: the subtasks of a task, one a source, each a chain of units."""
