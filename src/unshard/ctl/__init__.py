"""The client of a master: dmctl's verbs over the API, one at a time or at a prompt.

| module | contents |
|---|---|
| `app` | the command `unshard ctl` and its global flags |
| `shell` | the prompt, with a history |
| `completion` | completion at the prompt |
| `words` | arguments of a command line as fields of requests |
| `verbs` | the verbs, from arguments to requests |
| `session` | the global options, and the end of a command: the answer shown, the exit code |
| `runs` | the `unshard run` processes of the current folder |
| `client` | HTTP to the masters; each is tried until one answers |
| `direct` | commands that need no master, since they read the target's records |
| `tables` | the answers formatted for a terminal |
| `status_table` | `query-status` on a terminal |
"""
