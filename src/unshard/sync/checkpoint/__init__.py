"""The durable part of a source's progress. Runs on the driver.

| module | contents |
|---|---|
| `store` | the driver's writes: claim, open, close, move the checkpoint |
| `progress` | the positions that are read, applied and durable |
| `safe_mode` | when safe mode is on, and why |
"""
