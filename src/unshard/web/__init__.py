"""The HTTP face of master and worker: routes, TLS, tokens, the audit log."""
