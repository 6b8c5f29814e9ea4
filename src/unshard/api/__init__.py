"""The messages that ctl, master and worker send each other, in DM's field names. No I/O.

| module | contents |
|---|---|
| `verbs` | requests of `unshard ctl`, one class for each verb, and DM's form of the answers |
| `heartbeat` | a worker's heartbeat, and the master's answer: the state that it wants |
| `status` | a worker's answers: `query-status`, the copy by table, the newest log lines |
"""
