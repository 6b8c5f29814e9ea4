# cython: language_level=3, boundscheck=False, wraparound=False, cdivision=True
"""Finds where a byte range that has been scanned may be cut into pieces that are decoded in parallel."""

from __future__ import annotations

import cython
from cython.cimports.unshard.kernels.kinds import (
    ANONYMOUS_GTID,
    MARIADB_GTID,
    MYSQL_GTID,
    NOTE,
    PAYLOAD,
    ROWS,
    TABLE_MAP,
    TAGGED_GTID,
)
from cython.cimports.unshard.kernels.row_header import unpacked_size
from cython.cimports.unshard.kernels.wire import Bytes, u16, u32

HEADER = cython.declare(cython.int, 19)
ROWS_FLAGS = cython.declare(cython.int, 6)  # where the flags stand in a row event's body
STATEMENT_END = cython.declare(cython.int, 0x01)


def boundaries(
    data: cython.const[cython.uchar][::1],
    start: cython.longlong,
    end: cython.longlong,
    pieces: cython.longlong,
    kinds: bytes,
) -> list[int]:
    """Return offsets in `data[start:end]` at which decoding may begin: `start`, then the nearest to each equal share.

    They are GTID events and the first TABLE_MAP of a statement. `kinds` is the table of 256 event kinds. The range has
    been walked before, so only lengths are checked; after an invalid length there are no more offsets.
    """
    found: list[int] = [start]
    count: cython.longlong = 1
    offset: cython.longlong = start
    before: cython.longlong = start
    taken: cython.longlong = start
    length: cython.longlong
    goal: cython.longlong
    kind: cython.int
    mapped: cython.bint = False
    base: Bytes
    table: Bytes
    if not 0 < start <= end <= data.shape[0]:
        raise ValueError(f"start {start}, end {end}: outside the {data.shape[0]} bytes of data")
    if pieces < 1 or len(kinds) != 256:
        raise ValueError("at least one piece and just 256 kinds are needed")
    base = cython.address(data[0])
    table = cython.cast(Bytes, cython.cast(cython.p_char, kinds))
    goal = start + (end - start) // pieces
    while count < pieces and end - offset >= HEADER:
        length = u32(base + offset + 9)
        if length < HEADER or length > end - offset:
            break
        kind = table[base[offset + 4]]
        if kind in (MARIADB_GTID, MYSQL_GTID, ANONYMOUS_GTID, TAGGED_GTID) or (kind == TABLE_MAP and not mapped):
            while count < pieces and offset >= goal:
                # the place before the goal may lie nearer to it than this one
                best: cython.longlong = before if goal - before < offset - goal else offset
                if best > taken:
                    found.append(best)
                    taken = best
                count += 1
                goal = start + (end - start) * count // pieces
            before = offset
        if kind == TABLE_MAP:
            mapped = True
        elif kind == ROWS:
            if length >= HEADER + ROWS_FLAGS + 2 and u16(base + offset + HEADER + ROWS_FLAGS) & STATEMENT_END:
                mapped = False
        elif kind != NOTE:
            mapped = False
        offset += length
    return found


def slices(
    data: cython.const[cython.uchar][::1],
    start: cython.longlong,
    end: cython.longlong,
    size: cython.longlong,
    kinds: bytes,
) -> list[tuple[int, tuple[int, ...]]]:
    """Cut `data[start:end]` into pieces of about `size` bytes.

    Returns where each begins, and the TABLE_MAPs that it needs. Unlike `boundaries` this also cuts between the row
    events of one statement; the offsets of the statement's TABLE_MAPs come with such a piece. A piece is longer than
    `size` by one event at most. A compressed row event counts with its uncompressed size, a payload is a piece of its
    own. The same bytes always give the same pieces. The range has been walked before.
    """
    found: list[tuple[int, tuple[int, ...]]] = [(start, ())]
    maps: list[int] = []
    offset: cython.longlong = start
    taken: cython.longlong = start
    unpacked: cython.longlong = 0
    length: cython.longlong
    kind: cython.int
    alone: cython.bint = False
    base: Bytes
    table: Bytes
    if not 0 < start <= end <= data.shape[0]:
        raise ValueError(f"start {start}, end {end}: outside the {data.shape[0]} bytes of data")
    if size < 1 or len(kinds) != 256:
        raise ValueError("a positive size and just 256 kinds are needed")
    base = cython.address(data[0])
    table = cython.cast(Bytes, cython.cast(cython.p_char, kinds))
    while end - offset >= HEADER:
        length = u32(base + offset + 9)
        if length < HEADER or length > end - offset:
            break
        kind = table[base[offset + 4]]
        if kind in (MARIADB_GTID, MYSQL_GTID, ANONYMOUS_GTID, TAGGED_GTID):
            maps = []
        may_begin: cython.bint = kind == ROWS or kind in (MARIADB_GTID, MYSQL_GTID, ANONYMOUS_GTID, TAGGED_GTID)
        due: cython.bint = offset - taken + unpacked >= size and (may_begin or (kind == TABLE_MAP and not maps))
        if offset > taken and (due or alone or kind == PAYLOAD):
            found.append((offset, tuple(maps)))
            taken = offset
            unpacked = 0
        alone = kind == PAYLOAD
        if kind == TABLE_MAP:
            maps.append(offset)
        elif kind == ROWS:
            unpacked += unpacked_size(base[offset + 4], base + offset + HEADER, length - HEADER)
            if length >= HEADER + ROWS_FLAGS + 2 and u16(base + offset + HEADER + ROWS_FLAGS) & STATEMENT_END:
                maps = []
        elif kind != NOTE:
            maps = []
        offset += length
    return found
