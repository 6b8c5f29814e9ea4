"""The dump unit: a consistent snapshot, chunk by chunk, to files."""
