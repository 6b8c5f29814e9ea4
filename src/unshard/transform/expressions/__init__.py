"""Expressions in MySQL's language over whole batches of rows: read, checked against a table, evaluated. Pure."""
