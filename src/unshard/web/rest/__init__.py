"""DM's REST API, `/api/v1`, over the master's own methods.

| module | contents |
|---|---|
| `sources` | `/api/v1/sources` |
| `source_form` | the conversion between DM's source object and our source file |
| `tasks` | `/api/v1/tasks` |
| `task_tables` | the tables of a task |
| `task_form` | the conversion between DM's task object and our task file |
| `cluster` | `/api/v1/cluster` |
| `templates` | templates of tasks |
| `document` | the API's own description |
| `gateway` | DM's older API under `/apis/v1alpha1` |
"""
