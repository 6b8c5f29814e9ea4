"""The web page of a master.

`door.py` lets a browser in, `reader.py` reads the cluster once for all browsers, `figures.py` is what it has read,
`screens.py` and `actions.py` are the routes, `render.py` fills in the templates.
"""
