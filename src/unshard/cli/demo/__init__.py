"""`unshard demo`: a migration on throwaway servers, with a kill in the middle and a proof at the end.

| module | contents |
|---|---|
| `story` | the acts of the demo, in order, and the lines that it prints |
| `scene` | the servers, the shards under constant writes, and the files of the task |
| `proof` | the proof: rows are equal, and nothing was applied twice |
"""

from unshard.cli.demo.story import run_demo

__all__ = ["run_demo"]
