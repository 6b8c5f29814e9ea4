"""Source data of fixed shapes, the same for every tool. Each function writes to a server and returns what it wrote.

Everything is made from a seed, so two calls write the same rows. Statements are sent many at a time, because making the
data is not part of any figure.
"""

from __future__ import annotations

import hashlib
import itertools
import random
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path
from struct import pack, unpack_from

from unshard.testing.mariadb_server import MariadbServer

SYSBENCH_TABLE = (
    "CREATE TABLE {name} (id BIGINT NOT NULL AUTO_INCREMENT PRIMARY KEY, k INT NOT NULL, c CHAR(120) NOT NULL,"
    " pad CHAR(60) NOT NULL, KEY k_1 (k)) ENGINE=InnoDB"
)
WIDE_TABLE = (
    "CREATE TABLE {name} (id BIGINT UNSIGNED NOT NULL PRIMARY KEY, amount DECIMAL(20,4), at DATETIME(6), seen TIMESTAMP"
    " NOT NULL DEFAULT '2020-01-01', ratio DOUBLE, kind ENUM('red','green','blue'), flags SET('a','b','c'), note TEXT,"
    " raw VARBINARY(64), day DATE) ENGINE=InnoDB"
)
TIED_TABLE = (
    "CREATE TABLE {name} (id BIGINT NOT NULL PRIMARY KEY, number BIGINT NOT NULL, code VARCHAR(40) NOT NULL, k INT,"
    " c CHAR(120) NOT NULL, pad CHAR(60) NOT NULL, UNIQUE KEY (number), UNIQUE KEY (code)) ENGINE=InnoDB"
)
COUNTS = {
    "bulk": ("rows", 500_000),
    "oltp": ("transactions", 50_000),
    "hot": ("updates", 100_000),
    "wide": ("rows", 200_000),
    "tied": ("rows", 200_000),
}
"""By shape, what its function counts, and how much of it is the default."""

_BYTES_AT_ONCE = 1 << 20
_ROTATE, _STOP, _GTID = 4, 3, 162  # event types


@dataclass(frozen=True, slots=True)
class Written:
    """The result of one call: the binlog file that contains its changes and nothing else, and their number."""

    file: Path
    rows: int
    transactions: int


def bulk(server: MariadbServer, schema: str, *, rows: int = 500_000, at_once: int = 1000, seed: int = 1) -> Written:
    """Write rows of sysbench's shape in multi-row INSERTs of `at_once`, each a transaction of its own."""

    def statements() -> Iterator[str]:
        made = sysbench_rows(rows, seed=seed)
        while values := ",".join(itertools.islice(made, at_once)):
            yield f"INSERT INTO bulk VALUES {values}"

    return _write(server, schema, SYSBENCH_TABLE.format(name="bulk"), statements(), rows, -(-rows // at_once))


def sysbench_rows(rows: int, *, seed: int = 1) -> Iterator[str]:
    """Return the rows that `bulk` writes, each a list of values in brackets."""
    source = random.Random(seed)
    return (_sysbench_row(source, number) for number in range(1, rows + 1))


def oltp(server: MariadbServer, schema: str, *, transactions: int = 50_000, seed: int = 2) -> Written:
    """Write transactions of 1 to 5 rows: half inserts, the rest updates and deletes of rows written before."""
    source = random.Random(seed)
    made: list[str] = []
    live: list[int] = []
    rows = 0
    for _ in range(transactions):
        changes = [_oltp_change(source, live) for _ in range(source.randint(1, 5))]
        rows += len(changes)
        made.append("BEGIN; " + "; ".join(changes) + "; COMMIT" if len(changes) > 1 else changes[0])
    return _write(server, schema, SYSBENCH_TABLE.format(name="oltp"), made, rows, transactions)


def hot(server: MariadbServer, schema: str, *, updates: int = 100_000, rows: int = 20, seed: int = 3) -> Written:
    """Write a few rows, then update them again and again, each update a transaction."""
    source = random.Random(seed)
    seeds = ",".join(_sysbench_row(source, number) for number in range(1, rows + 1))
    made = [f"INSERT INTO hot VALUES {seeds}"]
    made += [f"UPDATE hot SET k = {number} WHERE id = {source.randint(1, rows)}" for number in range(updates)]
    return _write(server, schema, SYSBENCH_TABLE.format(name="hot"), made, rows + updates, updates + 1)


def wide(server: MariadbServer, schema: str, *, rows: int = 200_000, seed: int = 4) -> Written:
    """Write ten columns of as many types, in INSERTs of 500 rows."""

    def statements() -> Iterator[str]:
        source = random.Random(seed)
        for first in range(0, rows, 500):
            numbers = range(first + 1, min(first + 500, rows) + 1)
            yield "INSERT INTO wide VALUES " + ",".join(_wide_row(source, number) for number in numbers)

    return _write(server, schema, WIDE_TABLE.format(name="wide"), statements(), rows, -(-rows // 500))


def tied(server: MariadbServer, schema: str, *, rows: int = 200_000, seed: int = 6) -> Written:
    """Write rows with three unique keys without shared values: inserts of 1,000, then updates of every second row."""
    updated = rows // 2000

    def statements() -> Iterator[str]:
        source = random.Random(seed)
        for first in range(0, rows, 1000):
            numbers = range(first + 1, min(first + 1000, rows) + 1)
            yield "INSERT INTO tied VALUES " + ",".join(
                f"({number},{number},'{_digits(number, 24)}',{source.randrange(500_000)},"
                f"'{_digits(number, 119)}','{_digits(-number, 59)}')"
                for number in numbers
            )
        for first in range(0, updated * 2000, 2000):
            yield f"UPDATE tied SET number = -number, k = k + 1 WHERE id > {first} AND id <= {first + 1000}"

    changes = rows + updated * 1000
    return _write(server, schema, TIED_TABLE.format(name="tied"), statements(), changes, -(-rows // 1000) + updated)


def shards(server: MariadbServer, schema: str, *, tables: int, rows: int, seed: int = 4) -> Written:
    """Write rows of sysbench's shape to that many tables `shard_1` …, 20 in a transaction, each table in turn."""
    source = random.Random(seed)
    names = [f"shard_{number}" for number in range(1, tables + 1)]
    statements = (
        f"INSERT INTO {names[turn % tables]} VALUES "
        + ",".join(_sysbench_row(source, number) for number in range(first + 1, min(first + 20, rows) + 1))
        for turn, first in enumerate(range(0, rows, 20))
    )
    creates = [SYSBENCH_TABLE.format(name=name) for name in names]
    return _write(server, schema, creates, statements, rows, -(-rows // 20))


def part(shape: str, share: float) -> dict[str, int]:
    """Return the argument with which the function of a shape writes that share of its default, at least 2,000."""
    name, count = COUNTS[shape]
    return {name: max(2_000, round(count * share))}


def repeated(file: Path, times: int, into: Path) -> Path:
    """Write a binlog file that repeats the transactions of `file`, with adjusted positions and checksums."""
    log = file.read_bytes()
    events = []
    at = 4
    while at < len(log):
        (size,) = unpack_from("<I", log, at + 9)
        events.append(log[at : at + size])
        at += size
    first = next(number for number, event in enumerate(events) if event[4] == _GTID)
    last = len(events) - (events[-1][4] in (_ROTATE, _STOP))
    with into.open("wb") as out:
        out.write(log[:4] + b"".join(events[:first]))
        for _ in range(times):
            for event in events[first:last]:
                place = pack("<I", (out.tell() + len(event)) & 0xFFFFFFFF)
                body = b"".join((event[:13], place, event[17:-4]))
                out.write(body + pack("<I", zlib.crc32(body)))
    return into


def _write(
    server: MariadbServer, schema: str, table: str | list[str], statements: Iterable[str], rows: int, transactions: int
) -> Written:
    """Create the table or tables, then write the statements to a binlog file that contains nothing else."""
    creates = [table] if isinstance(table, str) else table
    server.run(f"CREATE DATABASE IF NOT EXISTS {schema}", f"USE {schema}", *creates, "FLUSH BINARY LOGS")
    file = server.binlog_files()[-1]
    connection = server.connection(schema)
    try:
        for text in _joined(statements):
            connection.query(text)
            while connection.next_result() == 0:
                pass
    finally:
        connection.close()
    server.query("FLUSH BINARY LOGS")
    return Written(file, rows, transactions)


def _joined(statements: Iterable[str]) -> Iterator[str]:
    """Yield the statements joined to packets of about a megabyte."""
    held: list[str] = []
    size = 0
    for statement in statements:
        held.append(statement)
        size += len(statement)
        if size >= _BYTES_AT_ONCE:
            yield ";".join(held)
            held, size = [], 0
    if held:
        yield ";".join(held)


def _sysbench_row(source: random.Random, number: int) -> str:
    return f"({number},{source.randrange(500_000)},'{_digits(number, 119)}','{_digits(-number, 59)}')"


def _digits(number: int, length: int) -> str:
    """Return groups of digits with dashes, as sysbench fills its columns."""
    text = str(int.from_bytes(hashlib.shake_128(str(number).encode()).digest(52), "big")).zfill(length)
    return "-".join(text[at : at + 11] for at in range(0, length, 12))


def _oltp_change(source: random.Random, live: list[int]) -> str:
    choice = source.random()
    if not live or choice < 0.5:
        live.append(live[-1] + 1 if live else 1)
        return f"INSERT INTO oltp VALUES {_sysbench_row(source, live[-1])}"
    if choice < 0.85 or len(live) < 2:
        return f"UPDATE oltp SET k = k + 1 WHERE id = {source.choice(live)}"
    at = source.randrange(len(live) - 1)  # the last one stays: it gives the next number
    number, live[at] = live[at], live[-2]
    del live[-2]
    return f"DELETE FROM oltp WHERE id = {number}"


def _wide_row(source: random.Random, number: int) -> str:
    second = f"{source.randrange(24):02}:{source.randrange(60):02}:{source.randrange(60):02}"
    day = f"20{source.randrange(10, 38):02}-{source.randrange(1, 13):02}-{source.randrange(1, 29):02}"
    return (
        f"({number + (1 << 63)},{source.randrange(10**12)}.{source.randrange(10**4):04},"
        f"'{day} {second}.{number % 10**6:06}',"
        f"'{day} {second}',{source.random()!r},{source.randint(1, 3)},{source.randrange(8)},'{_digits(number, 40)}',"
        f"x'{source.randbytes(16).hex()}','{day}')"
    )
