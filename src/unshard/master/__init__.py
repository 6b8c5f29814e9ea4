"""The master: which source runs where, what each task is to do, who leads.

| module | contents |
|---|---|
| `service` | the master: one method for each command, heartbeats, the leader's main loop |
| `election` | the election of the leader, by a lease in the store |
| `store` | the store: SQLite, or a database that several masters share |
| `tables` | the tables of the store, and their versions |
| `state` | the contents of the store as one frozen value |
| `cluster` | the leader's changes of the state, and its links to the workers |
| `settle` | the wait until subtasks have reached the requested stage |
| `tasks` | tasks: start, stop, pause, resume |
| `beginning` | the options of a start: at a time, or with the target's records dropped |
| `updates` | a task's or a source's file replaced |
| `files` | the stored files of tasks, sources and members: shown, exported, templates |
| `passwords` | passwords in stored files |
| `sources` | sources: added, shown, removed |
| `refusals` | the workers that have refused a source |
| `handover` | a source moved from a worker that refuses it to a free one |
| `transfer` | a source moved to another worker |
| `relays` | relay logs: started, stopped, paused, purged |
| `members` | masters and workers: listed, removed; the leader evicted |
| `records` | a task's records in its target, changed by a user |
| `liveness` | the liveness of workers, by their heartbeats |
| `scheduler` | the assignment of sources to workers |
| `orders` | the orders of a worker, computed from the state |
| `status` | `query-status`: the workers' reports, and a summary in one word |
"""
