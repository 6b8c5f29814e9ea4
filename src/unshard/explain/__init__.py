"""Explanations: which rules decide about a table or a statement, and the SQL that would run.

| module | contents |
|---|---|
| `table` | a table: its route, filters, mapping, and the SQL for example rows |
| `statement` | a statement: its operations, the outcome of each rule, the SQL on the target |
| `merged` | a statement on a merged table in optimistic mode |
| `names` | the rules that go by a table's name |
| `examples` | example statements for the rows of a table |
| `ends` | facts that are read from the servers, with `--connect` |
| `finding` | the parts of an explanation |
"""
