"""Table structures as values: read from SQL text, altered, and written as a server would. No server is asked."""
