"""Divides a piece of the load that the target refuses as too large, and finds what is left of it after a crash.

A *part* has some rows of a piece. Rows are counted through all statements of a piece, from 0; the count of those that
are committed is its *step*.
"""

from __future__ import annotations

import itertools
from dataclasses import replace

from unshard.errors import LoadError, Where
from unshard.load.pieces import LoadPiece
from unshard.load.sql_dump import row_spans

Span = tuple[int, int]


def smaller(part: LoadPiece, where: Where) -> tuple[LoadPiece, ...]:
    """Split a part into its statements, a single statement into halves; a part of one row gives none.

    Raises LoadError LOAD-003 for a statement whose rows can't be distinguished.
    """
    found = [row_spans(statement, where) for statement in part.statements]
    counts = [len(spans) for _, spans in found]
    if sum(counts) <= 1:
        return ()
    if len(counts) == 1:
        counts = [counts[0] // 2, counts[0] - counts[0] // 2]
    bounds = list(itertools.accumulate(counts, initial=part.start))
    return tuple(_between(part, found, start, end) for start, end in itertools.pairwise(bounds))


def behind(part: LoadPiece, step: int, where: Where) -> LoadPiece | None:
    """Return the rows of the part after the first `step` rows of its piece; None where there are none."""
    if step <= part.start:
        return part
    found = [row_spans(statement, where) for statement in part.statements]
    end = part.start + sum(len(spans) for _, spans in found)
    return _between(part, found, step, end) if step < end else None


def _between(part: LoadPiece, found: list[tuple[bytes, list[Span]]], start: int, end: int) -> LoadPiece:
    """Return rows `start` to `end` of the piece, which are among those of the part."""
    statements, number = [], part.start
    for (head, spans), text in zip(found, part.statements, strict=True):
        first, last = max(start - number, 0), min(end - number, len(spans))
        if first < last:
            whole = last - first == len(spans)
            statements.append(text if whole else head + text[spans[first][0] : spans[last - 1][1]])
        number += len(spans)
    through = number == end and part.end is None
    return replace(part, statements=tuple(statements), start=start, end=None if through else end)


def first_row(part: LoadPiece, where: Where) -> str:
    """Return the beginning of the part's first row, for a message. Raises as `smaller`."""
    text = part.statements[0]
    ((begin, end), *_) = row_spans(text, where)[1]
    return text[begin : min(end, begin + 80)].decode(errors="replace")


def too_large(part: LoadPiece, where: Where, cause: str) -> LoadError:
    """Return the error for a part of one row that the target doesn't take."""
    return LoadError("LOAD-009", where, cause, {"row": first_row(part, where)})
