"""The steps of a batch in their order, and those that write its rows into the target. Run on executors.

The functions of the steps before *apply* are in `sync/changes`, because the driver asks them too. A batch begins with
`pipeline`, in a Spark task or in the driver's process.

| module | contents |
|---|---|
| `pipeline` | the order of the steps |
| `report_keys` | the keys that a batch changes, for continuous validation |
| `apply` | step *apply*: each chunk and its receipt in one transaction |
| `execute` | the statements of a chunk |
| `key_search` | which of the rows that a chunk changes exist, by their keys; those that do are locked |
| `pacer` | the pauses that keep a task to its share of the rate |
"""
