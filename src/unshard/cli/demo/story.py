"""The demo, act by act: fill, copy under writes, kill, go on, stop, compare.

The real command runs as a child: its lines are shown as they come; it is frozen, killed or stopped with all that it
started.
"""

from __future__ import annotations

import signal
import time
from collections.abc import Callable

import typer
from rich.console import Console

from unshard.cli.demo.child import Child
from unshard.cli.demo.narration import act, say, tell_proof
from unshard.cli.demo.open_batches import OpenBatchCount, Watch
from unshard.cli.demo.proof import prove
from unshard.cli.demo.scene import Scene, SourceProduct, TargetProduct
from unshard.cli.printer import unstamped
from unshard.model.position import Position
from unshard.testing.programs import MissingProgramError
from unshard.testing.throwaway_server import ServerBootError

PATIENCE_SECONDS = 180.0
STOP_SECONDS = 60.0
_LOOK_SECONDS = 0.25
_HUNT_SECONDS = 0.003
_SETTLE_SECONDS = 0.2
_RUN_SECONDS = 3.0
"""Seconds that the command runs between two rests, while a batch is hunted."""
_REST_SECONDS, _LONGEST_REST_SECONDS = 1.5, 12.0
"""Seconds of its first and of its longest rest. Each rest is longer, and makes the next batch larger."""


class DemoFailed(Exception):
    """A demo that did not reach what it is to show; the text says where it stopped."""


def run_demo(console: Console, *, source: SourceProduct, target: TargetProduct, rows: int, seconds: int) -> None:
    """Play the demo and print it. Raises typer.Exit with code 1 when anything is not equal or not applied once.

    Args: console: the terminal or file that the text is printed to.
        source: the product of the two servers that are copied.
        target: the product of the server that is copied into.
        rows: rows in each of the eight shards before the copy.
        seconds: how long the writers go on after the copy.
    """
    terminated = signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        with Scene(source, target) as scene:
            try:
                passed = _play(console, scene, rows, seconds)
            except DemoFailed as failure:
                say(console, f"FAILED: {failure}")
                passed = False
            if not passed:
                scene.keep = True
                say(console, f"logs and files are left in {scene.folder}")
    except (MissingProgramError, ServerBootError) as error:
        say(console, f"FAILED: {error}")
        passed = False
    except KeyboardInterrupt:
        say(console, "interrupted; servers and child processes are gone")
        raise typer.Exit(130) from None
    finally:
        signal.signal(signal.SIGTERM, terminated)
    if not passed:
        raise typer.Exit(1)


def _play(console: Console, scene: Scene, rows: int, seconds: int) -> bool:
    begun = time.monotonic()
    act(console, "Two sources and a target start, in folders that go with the demo")
    scene.boot()
    servers = (*scene.sources, scene.target)
    say(console, f"  {', '.join(f'{server.product} on port {server.port}' for server in servers)}")
    scene.fill(rows)
    for shard in scene.shards():
        say(console, f"  {shard.source}  {shard.name}  {rows:,} rows")
    arguments = scene.write_files()
    act(console, f"The files, in {scene.folder}")
    for line in (scene.folder / "task.yaml").read_text().splitlines():
        say(console, f"  {line}")
    scene.start_writers()
    with Watch(scene.target) as watch:
        act(console, f"While both sources are written to: unshard {' '.join(arguments)}")
        open_batches, copied = _run_until_killed(console, scene, watch, arguments)
        act(console, "The same command again")
        child = _child(console, scene, arguments)
        try:
            _wait("the killed run's batches to be closed", child, lambda: _all_closed(watch, open_batches))
            _wait("the writers' time", child, lambda: time.monotonic() - copied >= seconds)
            transactions = scene.stop_writers()
            ends = scene.ends()
            act(console, f"The writers stop, after {transactions:,} transactions; the rest is followed, then Ctrl-C")
            _wait("the checkpoints to reach the binlogs' ends", child, lambda: _reached(watch, ends))
            code = child.interrupt(STOP_SECONDS)
        finally:
            child.kill()
    if code != 0:
        raise DemoFailed(f"after Ctrl-C the exit code is {code}, not 0")
    _compare(console, scene, ("compare", *arguments[1:]))
    act(console, "Source against target, shard by shard, and what the target's own record tells")
    proof = prove(scene.shards(), scene.target)
    tell_proof(console, proof, open_batches)
    say(console, f"{time.monotonic() - begun:.0f} seconds in all")
    return proof.equal and proof.once


def _compare(console: Console, scene: Scene, arguments: tuple[str, ...]) -> None:
    """Compare every row by the task's own rules, as a user does. Raises DemoFailed where not all are equal."""
    act(console, f"Every row of both ends: unshard {' '.join(arguments)}")
    child = _child(console, scene, (*arguments, "--quiet"))
    try:
        _wait("the comparison", None, lambda: child.exit_code is not None)
    finally:
        child.kill()
    if child.exit_code != 0:
        raise DemoFailed(f"unshard compare ended with exit code {child.exit_code}, not 0")


def _run_until_killed(
    console: Console, scene: Scene, watch: Watch, arguments: tuple[str, ...]
) -> tuple[list[OpenBatchCount], float]:
    """Make the first run: freeze it when a batch is half applied, then kill it. Return the batches it left open."""
    child = _child(console, scene, arguments)
    try:
        sources = len(scene.sources)
        _wait("the copy", child, lambda: len(watch.checkpoints()) == sources)
        copied = rested = time.monotonic()
        rest = _REST_SECONDS

        def caught() -> bool:
            nonlocal rested, rest
            if time.monotonic() - rested > _RUN_SECONDS:
                child.freeze()
                time.sleep(rest)
                child.thaw()
                rested, rest = time.monotonic(), min(rest * 1.5, _LONGEST_REST_SECONDS)
            return _caught_halfway(watch, child)

        _wait("a batch to be half applied", child, caught, _HUNT_SECONDS)
        processes = child.kill()
        _wait("the target to notice", None, lambda: watch.connections() == 0)
        found = watch.open_batches()
        act(console, f"SIGKILL to all {processes} processes of it, the JVM and the Python workers too")
        for batch in found:
            say(
                console,
                f"  {batch.source}: batch {batch.batch_id} is open, {batch.begin} to {batch.end};"
                f" {sum(batch.chunks)} of its chunks are in the target",
            )
        return found, copied
    finally:
        child.kill()


def _caught_halfway(watch: Watch, child: Child) -> bool:
    """Freeze the child where a batch is half applied; let it go on when the look came too late."""
    if not any(batch.halfway for batch in watch.open_batches()):
        return False
    child.freeze()
    time.sleep(_SETTLE_SECONDS)
    if any(batch.halfway for batch in watch.open_batches()):
        return True
    child.thaw()
    return False


def _all_closed(watch: Watch, killed: list[OpenBatchCount]) -> bool:
    now = {(batch.source, batch.batch_id) for batch in watch.open_batches()}
    return not any((batch.source, batch.batch_id) in now for batch in killed)


def _reached(watch: Watch, ends: dict[str, Position]) -> bool:
    at = watch.checkpoints()
    return all(source in at and at[source] >= end for source, end in ends.items())


def _child(console: Console, scene: Scene, arguments: tuple[str, ...]) -> Child:
    return Child(arguments, scene.folder, lambda line: say(console, f"  | {unstamped(line)}"))


def _wait(for_what: str, child: Child | None, done: Callable[[], bool], pause: float = _LOOK_SECONDS) -> None:
    """Look again and again until `done`. Raises DemoFailed when the child ends meanwhile, or patience does."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not done():
        if child is not None and child.exit_code is not None:
            raise DemoFailed(f"unshard ended with exit code {child.exit_code} while the demo waited for {for_what}")
        if time.monotonic() > deadline:
            raise DemoFailed(f"waited {PATIENCE_SECONDS:.0f} s for {for_what}")
        time.sleep(pause)
