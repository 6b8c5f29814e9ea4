"""Explains which rules decide about a table or a statement, and what would be run: for people and as JSON."""
