"""The lines that the demo prints: its acts, and its proof. They are ASCII where the output is no terminal."""

from __future__ import annotations

from rich import box
from rich.console import Console
from rich.table import Table

from unshard.cli.demo.open_batches import OpenBatchCount
from unshard.cli.demo.proof import Proof, Sum, chunks_left
from unshard.cli.demo.scene import MERGED


def act(console: Console, title: str) -> None:
    """Print a heading."""
    console.print(f"\n== {title}", markup=False, highlight=False, soft_wrap=True, style="bold")


def say(console: Console, line: str) -> None:
    """Print one line, as it is."""
    console.print(line, markup=False, highlight=False, soft_wrap=True)


def tell_proof(console: Console, proof: Proof, killed: list[OpenBatchCount]) -> None:
    """Print the table, the effect of the kill, the counts from the target's record, the verdict."""
    console.print(_table(console, proof), highlight=False)
    for batch in killed:
        done, left = sum(batch.chunks), chunks_left(proof, batch)
        say(
            console,
            f"The kill left batch {batch.batch_id} of {batch.source} open: {done} of its {done + left} chunks were"
            f" applied. The next run applied {left} chunks.",
        )
    applied = proof.applied
    say(console, f"Counted in {applied.record}:")
    say(console, f"  {applied.chunks:,} chunks with their receipt, {_twice(applied.chunks_twice)}")
    say(console, f"  {applied.versions:,} row versions inserted or updated, {_twice(applied.versions_twice)}")
    say(console, f"  {applied.deletes:,} deletes, {_twice(applied.deletes_twice)}")
    if applied.without_receipt:
        say(console, f"  {applied.without_receipt:,} OF THESE IN TRANSACTIONS WITHOUT A RECEIPT")
    say(console, f"{'EQUAL' if proof.equal else 'NOT EQUAL'}, {'ONCE' if proof.once else 'NOT ONCE'}")


def _table(console: Console, proof: Proof) -> Table:
    table = Table(box=box.ROUNDED if console.is_terminal else box.ASCII)
    table.add_column("shard", no_wrap=True)
    for heading in ("rows", "checksum", "merged", "checksum"):
        table.add_column(heading, justify="right", no_wrap=True)
    table.add_column("", no_wrap=True)
    for line in proof.shards:
        _row(table, f"{line.shard.source} {line.shard.name}", line.source, line.target, line.source == line.target)
    table.add_section()
    _row(table, str(MERGED), proof.source, proof.merged, proof.equal)
    return table


def _row(table: Table, name: str, source: Sum, target: Sum, equal: bool) -> None:
    verdict = "equal" if equal else "DIFFERS"
    table.add_row(name, f"{source.rows:,}", str(source), f"{target.rows:,}", str(target), verdict)


def _twice(count: int) -> str:
    return f"{count:,} OF THEM TWICE" if count else "none of them twice"
