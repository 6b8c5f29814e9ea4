"""Damaged binlog files through every reader: values, or a BinlogError with file and position, and nothing else.

`campaign` runs this file as a process of its own, with a limit on its memory and on the time of each example, so that
a crash, a hang and a flood are findings too. Hypothesis draws the damage. Where lengths, positions and checksums are
mended it reaches the decoder; without that, every value has to be one of the undamaged file.
"""

from __future__ import annotations

import faulthandler
import os
import resource
import subprocess
import sys
import zlib
from collections import Counter
from dataclasses import dataclass
from pathlib import Path
from struct import pack_into, unpack_from

from hypothesis import HealthCheck, Phase, given, seed, settings
from hypothesis import strategies as st

from support.seeds import rounds
from unshard.binlog.described import describe_table
from unshard.binlog.headers import read_format
from unshard.binlog.index import walk
from unshard.binlog.listing import ListingRange, Shown, list_events
from unshard.binlog.payload import unpack
from unshard.binlog.rows import decode_range
from unshard.binlog.table_map import TableMap
from unshard.binlog.transaction_range import BudgetReached, EndOfData, Rotate
from unshard.binlog.xa import PreparedStop
from unshard.errors import BinlogError, Where
from unshard.model.table import Table

SECONDS_AN_EXAMPLE = 60
MORE_MEMORY = 1 << 30
WHERE = Where(source="s1", file="mysql-bin.000001")
PAYLOAD = 40
NOT_COMPRESSED = b"\x02\x03\xfc\xff\x00"
"""A payload's field: its number, the value's length, the value, which takes three bytes."""

Transaction = tuple[int, int, tuple[str, ...]]
"""The bytes of an extent or of a prepared XA transaction, and the rows in it."""


def campaign(folder: Path, *, examples: int) -> None:
    """Damage the binlog files in `folder` so many times, or for UNSHARD_FUZZ_SECONDS, where that is set.

    Raises AssertionError with the finding; `folder/damaged` then has the bytes.
    """
    words = [str(folder), str(examples), os.environ.get("UNSHARD_FUZZ_SECONDS", "0")]
    environment = os.environ | {"PYTHONPATH": str(Path(__file__).parents[1])}
    command = [sys.executable, "-m", "support.binlog_fuzz", *words]
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode == 0, f"exit code {done.returncode}\n{done.stdout[-2000:]}\n{done.stderr[-6000:]}"
    sys.stdout.write(done.stdout)  # shown by `pytest -s`


@dataclass(frozen=True, slots=True)
class File:
    """A file cut into its events, the magic bytes apart."""

    data: bytes
    events: tuple[bytes, ...]
    checksum: bool
    whole: tuple[Transaction, ...]

    @classmethod
    def of(cls, data: bytes) -> File:
        found, error = read_all(data)
        if error is not None:
            raise error
        return cls(data, tuple(cut(data, 4)), read_format(data).checksum, tuple(found))


def cut(data: bytes, at: int) -> list[bytes]:
    """The events from `at` on."""
    events = []
    while at < len(data):
        (length,) = unpack_from("<I", data, at + 9)
        events.append(data[at : at + length])
        at += length
    return events


def read_all(data: bytes) -> tuple[list[Transaction], BinlogError | None]:
    """The transactions of a file, as a task reads them, and the error that ended it."""
    found: list[Transaction] = []
    tables: dict[str, Table] = {}

    def wanted(table_map: TableMap, offset: int) -> Table:
        key = repr(table_map)
        if key not in tables:
            tables[key] = describe_table(table_map)
        return tables[key]

    def rows(start: int, end: int) -> tuple[str, ...]:
        decoded = decode_range(data, start, end, checksum=form.checksum, wanted=wanted, where=WHERE)
        batches = [*decoded, *((images.table, images.batch) for images in decoded.partial)]
        for _, batch in batches:
            batch.validate(full=True)
        return tuple(f"{table.name}: {[column.to_pylist() for column in batch.columns]}" for table, batch in batches)

    try:
        form = read_format(data, WHERE)
        at = form.end
        while True:
            log_range = walk(data, at, size=len(data), budget=1, checksum=form.checksum, where=WHERE)
            stop = log_range.stop
            found.append(
                (log_range.start, log_range.end, rows(log_range.start, log_range.end) if log_range.row_events else ())
            )
            if isinstance(stop, EndOfData | Rotate):
                return found, None
            if isinstance(stop, PreparedStop) and stop.row_events:
                found.append((stop.start, stop.end, rows(stop.start, stop.end)))
            at = log_range.end if isinstance(stop, BudgetReached) else stop.end
    except BinlogError as error:
        return found, error


def show_all(data: bytes) -> BinlogError | None:
    """All events as `unshard binlog show` reads them, row by row."""
    try:
        form = read_format(data, WHERE)
        shown = list_events(
            data,
            len(data),
            checksum=form.checksum,
            where=WHERE,
            choice=ListingRange(),
            naming=lambda query: ((), ()),
            growing=False,
        )
        for item in shown:
            if isinstance(item, Shown) and item.rows is not None:
                for _ in item.rows:
                    pass
    except BinlogError as error:
        return error
    return None


@st.composite
def damage(draw: st.DrawFn, piece: bytes) -> bytes:
    """`piece` with bits turned, numbers set to what is awkward, bytes cut out, doubled or moved."""
    made = bytearray(piece)
    for _ in range(draw(st.integers(1, 4))):
        at = draw(st.integers(0, max(len(made) - 1, 0)))
        size = draw(st.sampled_from([1, 1, 2, 3, 4, 8, 20, 200]))
        match draw(st.sampled_from(["bit", "byte", "number", "cut", "double", "noise", "end"])):
            case "bit" if made:
                made[at] ^= 1 << draw(st.integers(0, 7))
            case "byte" if made:
                made[at] = draw(st.sampled_from([0, 1, 127, 128, 250, 251, 252, 253, 254, 255]) | st.integers(0, 255))
            case "number":
                made[at : at + min(size, 8)] = draw(st.sampled_from([b"\xff", b"\0", b"\x7f", b"\x80"])) * min(size, 8)
            case "cut":
                del made[at : at + size]
            case "double":
                start = draw(st.integers(0, max(len(made) - 1, 0)))
                made[at:at] = made[start : start + size]
            case "noise":
                made[at : at + size] = draw(st.binary(max_size=20))
            case "end":
                del made[at:]
    return bytes(made)


class Example:
    """A file's damaged bytes; `mended` tells whether lengths, positions and checksums fit them.

    No dataclass: hypothesis would print all of it.
    """

    def __init__(self, file: File, data: bytes, *, mended: bool) -> None:
        self.file = file
        self.data = data
        self.mended = mended

    def __repr__(self) -> str:
        return f"<{len(self.data)} bytes{', mended' * self.mended}>"


@st.composite
def damaged_payload(draw: st.DrawFn, body: bytes) -> bytes:
    """A payload with good headers around damaged events, not compressed: what unpacking doesn't notice."""
    try:
        events = cut(unpack(PAYLOAD, body), 0)
    except ValueError:  # damaged before
        return draw(damage(body))
    number = draw(st.integers(0, len(events) - 1))
    content = bytearray()
    for index, event in enumerate(events):
        made = bytearray(event[:19] + (draw(damage(event[19:])) if index == number else event[19:]))
        pack_into("<II", made, 9, len(made), 0)
        content += made
    size = b"\x09\xfe" + len(content).to_bytes(8, "little")
    return NOT_COMPRESSED + b"\x03" + size + b"\x01" + size + b"\0" + content


@st.composite
def examples_of(draw: st.DrawFn, files: list[File]) -> Example:
    file = draw(st.sampled_from(files))
    if not draw(st.booleans()):
        return Example(file, file.data[:4] + draw(damage(file.data[4:])), mended=False)
    bodies = [event[19 : len(event) - 4 * _summed(file, event)] for event in file.events]
    kinds = [event[4] for event in file.events]
    for _ in range(draw(st.integers(1, 2))):
        kind = draw(st.sampled_from(sorted(set(kinds))))
        number = draw(st.sampled_from([number for number, found in enumerate(kinds) if found == kind]))
        packed = kind == PAYLOAD and draw(st.booleans())
        bodies[number] = draw(damaged_payload(bodies[number]) if packed else damage(bodies[number]))
    order = list(range(len(bodies)))
    if draw(st.integers(0, 9)) == 0:
        first, second = (draw(st.integers(1, len(order) - 1)) for _ in range(2))
        order[first], order[second] = order[second], order[first]
    return Example(file, _mended(file, [(file.events[number], bodies[number]) for number in order]), mended=True)


def _summed(file: File, event: bytes) -> bool:
    return file.checksum or event[4] == 15


def _mended(file: File, pieces: list[tuple[bytes, bytes]]) -> bytes:
    """The file of these events, each a good header and another body."""
    data = bytearray(file.data[:4])
    for event, body in pieces:
        summed = _summed(file, event)
        made = bytearray(event[:19] + body)
        length = len(made) + 4 * summed
        pack_into("<II", made, 9, length, len(data) + length)
        if event[4] == 15:
            made[17] &= ~1  # in use: not part of the sum
        if summed:
            made += zlib.crc32(made).to_bytes(4, "little")
        data += made
    return bytes(data)


def check(example: Example, outcomes: Counter[str]) -> None:
    """One example through all readers."""
    file = example.file
    found, error = read_all(example.data)
    for problem in (error, show_all(example.data)):
        outcomes["values" if problem is None else problem.code] += 1
        assert problem is None or (problem.where.file and problem.where.position), problem
        str(problem)
    if file.checksum and not example.mended:
        kept = [transaction for transaction in found if transaction[2]]
        whole = [transaction for transaction in file.whole if transaction[2]]
        assert kept == whole[: len(kept)], "a value that the file never held, under a good checksum"


def main(folder: Path, examples: int, seconds: float) -> None:
    files = [File.of(path.read_bytes()) for path in sorted(folder.iterdir()) if path.name != "damaged"]
    for file in files:
        assert show_all(file.data) is None
    outcomes: Counter[str] = Counter()
    used = resource.getpagesize() * int(Path("/proc/self/statm").read_text().split()[0])
    resource.setrlimit(resource.RLIMIT_AS, (used + MORE_MEMORY, used + MORE_MEMORY))
    scratch = os.open(folder / "damaged", os.O_CREAT | os.O_RDWR)

    def keep(data: bytes) -> None:
        os.pwrite(scratch, data, 0)
        os.ftruncate(scratch, len(data))

    def run(drawn: int) -> None:
        @seed(drawn)
        @settings(
            max_examples=examples,
            deadline=None,
            database=None,
            phases=(Phase.generate, Phase.shrink),
            suppress_health_check=list(HealthCheck),
        )
        @given(examples_of(files))
        def each(example: Example) -> None:
            keep(example.data)
            faulthandler.dump_traceback_later(SECONDS_AN_EXAMPLE, exit=True)
            check(example, outcomes)
            faulthandler.cancel_dump_traceback_later()

        each()

    for drawn in rounds(seconds):
        run(drawn)
    assert outcomes["values"]
    assert len(outcomes) > 3
    sys.stdout.write(f"{outcomes.total() // 2} damaged files: {dict(sorted(outcomes.items()))}\n")


if __name__ == "__main__":
    main(Path(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]))
