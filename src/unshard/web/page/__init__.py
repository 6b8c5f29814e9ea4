"""The web page of a master.

| module | contents |
|---|---|
| `door` | the login of a browser |
| `endpoints` | the routes of the page |
| `reader` | one reader of the cluster's state for all browsers |
| `figures` | the figures that it reads, as frozen values |
| `trends` | the lag and the times of steps over the last hours |
| `copying` | the copy by table |
| `log_watch` | the newest lines of the log |
| `validation` | the rows that continuous validation finds to differ |
| `route_reader` | the screen of a task's routes |
| `routes` | the picture of a task's routes |
| `task_files` | the text of a new or changed task file |
| `actions` | the verbs that a user can run, with their forms |
| `screens` | the screens of one snapshot, and the stream of updates |
| `render` | the templates |
"""
