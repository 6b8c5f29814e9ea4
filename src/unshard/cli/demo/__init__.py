"""`unshard demo`: a migration on throwaway servers, with a kill in the middle and a proof at the end.

| module | contents |
|---|---|
| `story` | the acts of the demo, in order |
| `scene` | the servers, the shards under constant writes, and the files of the task |
| `child` | the command `unshard` as a child process |
| `open_batches` | checkpoints and open batches, read from outside of the run |
| `proof` | the proof: rows are equal, and nothing was applied twice |
| `applied_counts` | how often the target applied each change |
| `narration` | the lines that the demo prints |
"""

from unshard.cli.demo.story import run_demo

__all__ = ["run_demo"]
