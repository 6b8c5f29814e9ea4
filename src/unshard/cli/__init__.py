"""The command line: `unshard` and its verbs, except those of `unshard ctl`.

| module | contents |
|---|---|
| `app` | the list of the subcommands, their flags, and the exit after an error |
| `loading` | the import of modules: no garbage collection, and Ctrl-C ends at once |
| `process` | the exit of a process: by an error or a signal |
| `printer` | the lines of a run, on a terminal or in a file |
| `run` | `unshard run`: a whole migration in one process |
| `run_file` | the files by which `unshard ctl` finds a run |
| `embedded_cluster` | the master and the workers inside that process |
| `display` | the bars and status lines of a running task |
| `json_status` | `--json-status`: the status of a running task as JSON |
| `master` | `unshard master` |
| `worker` | `unshard worker` |
| `status` | `unshard status`: the target's records of a task |
| `explain` | `unshard explain`: why a table or statement is migrated, or not |
| `binlog` | `unshard binlog show`: the events of a binlog or relay file |
| `binlog_lines` | the events of a binlog file as lines or as JSON |
| `comparing` | the flags of `compare` and `cutover` |
| `compare` | `unshard compare`: compares the rows of the sources with those of the target |
| `compare_subject` | the servers and options of a comparison, by a task's files or another tool's |
| `cutover` | `unshard cutover`: the guided end of a migration |
| `monitoring` | `unshard metrics`: dashboard, alert rules, list of metrics |
| `demo` | `unshard demo` |
"""
