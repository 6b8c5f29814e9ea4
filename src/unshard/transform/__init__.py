"""Filter, route and map rows and names. Pure."""
