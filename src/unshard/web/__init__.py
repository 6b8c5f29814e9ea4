"""HTTP of master and worker: routes, TLS, tokens, the audit log.

| module | contents |
|---|---|
| `server` | the server: socket, TLS, request limits, graceful stop |
| `tls` | TLS between the processes of a cluster |
| `alive` | whether a process answers at all |
| `tokens` | the caller of a request |
| `guard` | the role that each route needs |
| `audit` | the audit log |
| `audit_names` | the names in a request that the audit log writes |
| `leader` | requests forwarded to the leader |
| `answers` | responses with errors, lists and results of commands |
| `observe` | `/metrics`, settings, the log level |
| `master_app` | the routes of a master: verbs of ctl, heartbeats |
| `rest` | DM's REST API |
| `page` | the page for browsers |
| `links` | the HTTP clients between masters and workers |
| `worker_app` | the routes of a worker |
"""
