"""Table structures as values: read from SQL text, altered, and written as a server would write them.

Nothing here asks a server.
"""
