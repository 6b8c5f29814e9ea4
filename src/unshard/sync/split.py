"""A chunk that the target refuses as too large, in pieces: a transaction and a receipt each, in the same order."""

from __future__ import annotations

import itertools

from unshard.sync.merge import Chunk


def smaller(piece: Chunk) -> tuple[Chunk, ...]:
    """The piece statement by statement; a single statement in halves. Of one change: none. Pure."""
    bounds = [piece.start]
    for statement in piece.statements:
        if statement.rows:  # one without belongs to the change behind it
            bounds.append(bounds[-1] + statement.rows)
    if len(bounds) == 2:
        bounds.insert(1, piece.start + piece.rows // 2)
    if piece.rows == 1:
        return ()
    return tuple(piece.part(start, end) for start, end in itertools.pairwise(bounds))
