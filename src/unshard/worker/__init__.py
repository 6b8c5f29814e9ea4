"""The worker: one source, its relay, and a subtask for each of its tasks.

| module | contents |
|---|---|
| `agent` | the worker: heartbeats to the master, and the orders in the answers |
| `source_worker` | one source: the relay and the subtasks that the orders ask for |
| `refused_subtask` | orders that can't be read, and the subtasks that report it |
| `subtask_runner` | one subtask with its thread, run by the master's orders |
| `build` | a subtask's config made into its units |
| `start` | the location at which a subtask starts |
| `followed_mark` | a mark beside the relay log: the target has had a checkpoint of the task |
| `source_facts` | the tables of a source at a start, and the rules checked against them |
| `first_structures` | the structures with which a task without a copy begins |
| `source_traits` | settings of a source on which statements depend |
| `engine` | the one Spark session of the process |
| `subtask` | a subtask: relay, dump, load, sync, in that order |
| `shared_relay` | one relay for all subtasks of a source |
| `purging` | the purge of relay files that no subtask needs |
| `auto_resume` | the times at which a paused subtask resumes by itself |
| `stages` | the stages of a subtask, and the events between them |
| `status` | a status snapshot of a subtask |
| `watch` | a server's answers for the status |
| `history` | two hours of the figures of a source's tasks, for charts |
| `report` | the status of subtasks and relays in the API's format |
| `copied_tables` | the tables of a subtask's copy as reported last |
| `metrics` | samples for `/metrics` |
"""
