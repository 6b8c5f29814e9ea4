"""The command line: `unshard` and its verbs, except those of `unshard ctl`.

| module | contents |
|---|---|
| `app` | the list of the verbs, their flags, and how an error ends a command |
| `loading` | the loading of modules: no garbage collection, and Ctrl-C ends at once |
| `process` | the exit code of a command that fails, and the stop on a signal |
| `output` | the streams of a run, which goes on where they can't be written |
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
| `compare` | `unshard compare`: rows of the sources compared with those of the target |
| `compare_subject` | the sources and the target of a comparison, from a task's files or from another tool's |
| `cutover` | `unshard cutover`: the guided end of a migration |
| `monitoring` | `unshard metrics`: dashboard, alert rules, list of metrics |
| `demo` | `unshard demo` |
"""
