"""DM's REST API, `/api/v1`, over the master's own methods.

| module | contents |
|---|---|
| `sources` | `/api/v1/sources` |
| `tasks` | `/api/v1/tasks`, and a task's tables |
| `task_form` | DM's task object and our task file, each made of the other |
| `cluster` | `/api/v1/cluster`, templates of tasks, the API document |
| `gateway` | DM's older paths, `/apis/v1alpha1` |
"""
