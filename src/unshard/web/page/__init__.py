"""The web page of a master.

| module | contents |
|---|---|
| `door` | the login of a browser |
| `endpoints` | the routes of the page |
| `reader` | polls the cluster's state once for all browsers |
| `figures` | the figures that the page shows, as dataclasses |
| `reported` | these figures, computed from the workers' answers |
| `restored` | figures of the past, computed from what the workers have kept |
| `trends` | the lag of each task over the last hour |
| `step_times` | the times of a batch's steps over two hours |
| `concerns` | the problems of a cluster, found in its figures |
| `verdict` | the headline: a sentence for each problem |
| `copying` | the progress of each table's copy |
| `log_watch` | the newest log lines of the processes that serve a task |
| `validation` | the rows that continuous validation finds to differ |
| `route_reader` | the routes page of a task |
| `routes` | the picture of a task's routes |
| `new_task` | the form for a new task |
| `draft` | a draft that changes a task |
| `actions` | the verbs that a user can run, with their forms |
| `screens` | the pages rendered from one snapshot, and the stream of updates |
| `render` | the templates |
"""
