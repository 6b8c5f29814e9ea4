"""The web page of a master.

`door.py` lets a browser in, `reader.py` reads the cluster once for all browsers, `figures.py` is what it has read,
`copying.py` the copy by table, `log_watch.py` the newest lines of the log, `validation.py` the rows that differ,
`reported.py` makes figures of the workers' reports, `concerns.py` finds what is not fine in them, `verdict.py` puts it
into words. `routes.py` and `route_reader.py` have a task's routes, `trends.py` its lag of an hour and the seconds of
its steps, `restored.py` the past that the workers have kept, `task_files.py` a new or changed file of a task,
`actions.py` what can be done. `endpoints.py` has the routes, `screens.py` what they show, `render.py` fills in the
templates.
"""
