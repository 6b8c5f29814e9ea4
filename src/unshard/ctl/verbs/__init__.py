"""The command table: each file has verbs that belong together, from words to requests."""
