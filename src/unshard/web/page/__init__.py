"""The web page of a master.

| module | contents |
|---|---|
| `door` | the login of a browser |
| `endpoints` | the routes of the page |
| `reader` | one reader of the cluster's state for all browsers |
| `figures` | the figures that it reads, as frozen values |
| `reported` | figures made of the workers' reports |
| `restored` | figures of the past that the workers have kept, after a change of the leader |
| `trends` | the lag of each task over the last hour |
| `step_times` | the times of a batch's steps over two hours |
| `concerns` | what is not fine in the figures |
| `verdict` | the headline: a sentence for each problem |
| `copying` | the copy by table |
| `log_watch` | the newest log lines of the processes of a task |
| `validation` | the rows that continuous validation finds to differ |
| `route_reader` | the routes page of a task |
| `routes` | the picture of a task's routes |
| `new_task` | the form for a new task |
| `draft` | a draft that changes a task |
| `actions` | the verbs that a user can run, with their forms |
| `screens` | the screens, rendered from a snapshot of the state, and the stream of updates |
| `render` | the templates |
"""
