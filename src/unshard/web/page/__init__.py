"""The web page of a master.

| module | contents |
|---|---|
| `door` | the login of a browser |
| `endpoints` | the routes of the page |
| `reader` | the reader of the cluster's state for all browsers, with the last two hours of it |
| `figures` | the figures that it reads, as frozen dataclasses |
| `reported` | figures computed from the workers' reports |
| `restored` | figures of the past that the workers have kept |
| `trends` | the lag of each task over the last hour |
| `step_times` | the times of a batch's steps over two hours |
| `concerns` | warnings derived from the figures |
| `verdict` | the headline: a sentence for each of these |
| `copying` | the full load's progress by table |
| `log_watch` | the newest lines of the log |
| `validation` | the rows that continuous validation finds to differ |
| `route_reader` | the routes page of a task |
| `routes` | the picture of a task's routes |
| `new_task` | the form for a new task |
| `draft` | a draft that changes a task |
| `actions` | the verbs that a user can run, with their forms |
| `screens` | the screens of one snapshot, and the stream of updates |
| `render` | the templates |
"""
