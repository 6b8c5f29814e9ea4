"""The user's files: task and source files in DM's format, and files of processes, read strictly."""
