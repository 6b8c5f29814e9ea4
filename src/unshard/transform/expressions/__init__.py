"""Expressions in MySQL's language over whole batches of rows: parsed, compiled for a table, evaluated. Pure.

| module | contents |
|---|---|
| `filter` | `expression-filter`: rows left out by their values |
| `parse` | the text of an expression as a tree |
| `compile` | a tree compiled for a table, and checked |
| `values` | the type and the evaluation of each part of an expression |
| `moments` | dates and times: literals, and functions such as YEAR() |
| `compare` | comparisons of two values |
| `texts` | comparisons of strings under a collation |
| `arithmetic` | exact arithmetic |
"""
