"""The user's files: task and source files in DM's format, and config files of processes. Unknown keys are errors.

| module | contents |
|---|---|
| `files` | the way of a file: read, parsed, checked, made into a model |
| `document` | YAML text as plain data with line numbers |
| `syntax_errors` | syntax errors of YAML explained |
| `keys` | a file's keys checked against the models: renamed, dropped or refused |
| `problems` | the problems of a file, reported together with their lines |
| `section` | the base class of all models, and the markers of their keys |
| `quantities` | durations and sizes with their units |
| `source` | the source file |
| `task` | the task file |
| `rules` | the sections of rules: routes, filters, block-allow lists, column mappings |
| `units` | the sections of the units: dump, load, sync, validators |
| `database` | the sections with a database server's address, account and TLS |
| `dump_flags` | `extra-args` of a dump |
| `event_names` | the words of `events` in an event filter |
| `patterns` | the patterns of schema and table names |
| `table_rules` | the rules of a table filter |
| `subtask` | a subtask's settings: one source's part of a task, with defaults filled in |
| `listener` | the settings of processes that listen, and of ctl |
| `access` | roles, and the file of API tokens |
| `log` | the log settings of master and worker |
| `master` | the configuration file of a master |
| `worker` | the file of a worker |
| `secret` | secrets by reference |
| `encryption` | the encryption of passwords |
| `redact` | files without their secrets, for display |
| `reference` | the reference page of all keys |
"""
