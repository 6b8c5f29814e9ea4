"""The loops that touch every byte, compiled with Cython from typed Python.

| module | contents |
|---|---|
| `packets` | packets of the replica stream as checked events |
| `checksum` | CRC-32 of events |
| `scan` | the walk over event headers, which finds whole transactions |
| `gtids` | GTIDs of events, collected as runs |
| `seen_names` | a cache of table names |
| `split` | the points at which a byte range may be cut |
| `rows` | the loop from row events to columns |
| `sink` | the growing columns of one table |
| `partial` | the same for row images that lack columns |
| `numbers` | readers of numbers |
| `times` | readers of dates and times |
| `strings` | readers of strings, bytes, BIT and addresses |
| `texts` | text of any character set, converted to UTF-8 |
| `json` | binary JSON as text |
| `json_scalars` | scalars of binary JSON |
| `json_text` | writers of JSON text |
| `result_rows` | rows of a result set, read off the socket |
| `transcode` | an Arrow column of any character set as UTF-8 |
| `components` | connected components, for step *causality* |
| `literals` | columns as SQL text; keys as partition numbers |
| `bulk_rows` | the VALUES list of an INSERT as the rows of a bulk statement |
| `text` | writers of SQL literals |
"""
