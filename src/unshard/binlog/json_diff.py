"""Partial updates of JSON documents, which MySQL logs when `binlog_row_value_options` is PARTIAL_JSON.

A list of diffs represents the new document: each is an operation (1 byte), a path (after its packed length) and,
unless it removes, a value in binary JSON (likewise). Rare enough for Python: the document becomes a tree whose
leaves keep their text.

In a PARTIAL_UPDATE_ROWS event a document of an image after is binary JSON of its own, or a list of diffs on the
document of the image before. Only the latter costs a Python object.
"""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from unshard.binlog.columns import Buffers, UndecodableValue
from unshard.kernels.json import to_text

_REPLACE, _INSERT, _REMOVE = 0, 1, 2
_DEEPEST = 100  # MySQL's own limit
_PACKED = {252: 2, 253: 3, 254: 8}
_LEG = re.compile(r'\[(?:(last)(?:-(\d{1,10}))?|(\d{1,10}))\]|\.(?:("(?:[^"\\]|\\.)*")|([^.\[\]"*\s]+))', re.DOTALL)

_Leg = str | tuple[bool, int]
"""A member's name, or a cell's number, counted from the array's end where the first is True."""


class _Number(str):
    """The text of a number, in a type of its own to distinguish it from a string."""


_OPAQUE_TYPE = b"\x0f"
"""The type byte of an opaque value in binary JSON."""
_OPAQUE = _Number("NaN")
"""Stands for an opaque value in a tree that is only asked whether it has one."""


def apply_diffs(before: bytes, diffs: bytes) -> str:
    """Return the text of a document after `diffs`; `before` is its binary JSON.

    Values that no diff touches keep their text. Raises ValueError for bytes that are no document or no diffs, and where
    the two don't fit: a path that leads nowhere, a member that exists already.
    """
    document = _after(before, diffs)
    return document.text(document.root, 1)


def leaves_opaque(before: bytes, diffs: bytes) -> bool:
    """Return whether a document holds opaque values after `diffs`: values of types that JSON lacks.

    The two are known to fit, by `apply_diffs`.
    """
    if _OPAQUE_TYPE not in before and _OPAQUE_TYPE not in diffs:
        return False
    return _holds_opaque(_after(before, diffs, hidden=True).root)


def _after(before: bytes, diffs: bytes, *, hidden: bool = False) -> _Document:
    document = _Document(_tree(before, hidden=hidden))
    rest = diffs
    while rest:
        operation, rest = rest[0], rest[1:]
        path, rest = _packed(rest)
        value = b""
        if operation in (_REPLACE, _INSERT):
            value, rest = _packed(rest)
        try:
            document.change(
                operation, _legs(path.decode()), _tree(value, hidden=hidden) if operation != _REMOVE else None
            )
        except LookupError:
            raise ValueError(f"no change {operation} can be made at {path.decode()}") from None
    return document


@dataclass(slots=True)
class _Document:
    """A JSON document as a tree: dicts, lists, None, bool, `_Number`, and str for strings without quotes and escapes.

    `grown` holds the objects that got new members. New members are at the end of an object; `text` puts them in order.
    """

    root: Any
    grown: dict[int, Any] = field(default_factory=dict)

    def change(self, operation: int, legs: list[_Leg], value: Any) -> None:
        """Apply one diff. Raises LookupError where it doesn't fit the document."""
        parent = self.root
        for leg in legs[:-1]:
            parent = parent[_place(parent, leg)]
        if not legs:
            raise LookupError
        if operation == _INSERT:
            self._insert(parent, legs[-1], value)
        elif operation == _REPLACE:
            parent[_place(parent, legs[-1])] = value
        else:
            del parent[_place(parent, legs[-1])]

    def _insert(self, parent: Any, leg: _Leg, value: Any) -> None:
        if isinstance(leg, str) and isinstance(parent, dict) and leg not in parent:
            parent[leg] = value
            self.grown[id(parent)] = parent
        elif isinstance(leg, tuple) and isinstance(parent, list):
            from_end, number = leg
            parent.insert(max(len(parent) - 1 - number, 0) if from_end else number, value)
        else:
            raise LookupError

    def text(self, value: Any, depth: int) -> str:
        """As MySQL prints it: members by length of their key, then by its bytes."""
        if isinstance(value, dict | list) and depth > _DEEPEST:
            raise ValueError(f"the document has more than {_DEEPEST} levels")
        if isinstance(value, dict):
            members = list(value.items())
            if id(value) in self.grown:
                members.sort(key=lambda member: (len(member[0].encode()), member[0].encode()))
            return "{" + ", ".join(f"{_quoted(key)}: {self.text(item, depth + 1)}" for key, item in members) + "}"
        if isinstance(value, list):
            return "[" + ", ".join(self.text(item, depth + 1) for item in value) + "]"
        return value if isinstance(value, _Number) else _quoted(value)


def _place(parent: Any, leg: _Leg) -> Any:
    """Return the key or index of an existing member. Raises LookupError."""
    if isinstance(parent, dict) and isinstance(leg, str) and leg in parent:
        return leg
    if isinstance(parent, list) and isinstance(leg, tuple):
        from_end, number = leg
        index = len(parent) - 1 - number if from_end else number
        if 0 <= index < len(parent):
            return index
    raise LookupError


def _legs(path: str) -> list[_Leg]:
    if path[:1] != "$":
        raise ValueError(f"{path!r} is no path")
    legs: list[_Leg] = []
    at = 1
    while at < len(path):
        match = _LEG.match(path, at)
        if match is None:
            raise ValueError(f"{path!r} is no path")
        last, back, cell, quoted, name = match.groups()
        if last or cell:
            legs.append((bool(last), int(cell or back or 0)))
        else:
            legs.append(json.loads(quoted) if quoted else name)
        at = match.end()
    return legs


def _packed(data: bytes) -> tuple[bytes, bytes]:
    """Return the bytes after a packed length, of that length, and the bytes after those. Raises ValueError."""
    size = _PACKED.get(data[0], 0) if data else 0
    if not data or data[0] in (251, 255) or len(data) < 1 + size:
        raise ValueError("a diff ends within a length")
    length = int.from_bytes(data[1 : 1 + size], "little") if size else data[0]
    start = 1 + size
    if len(data) - start < length:
        raise ValueError("a diff goes beyond its end")
    return data[start : start + length], data[start + length :]


def _tree(document: bytes, *, hidden: bool) -> Any:
    """Return the tree of a document in binary JSON; where its opaque values are `hidden`, each is `_OPAQUE`."""
    (text,) = to_text(pa.array([document], pa.binary()), hidden=hidden).to_pylist()
    return json.loads(text, parse_int=_Number, parse_float=_Number, parse_constant=lambda name: _OPAQUE)


def _holds_opaque(value: Any) -> bool:
    if isinstance(value, dict):
        return any(map(_holds_opaque, value.values()))
    return any(map(_holds_opaque, value)) if isinstance(value, list) else value is _OPAQUE


def _quoted(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)


def document_buffers(rows: int, buffers: Buffers, changed: Sequence[int]) -> tuple[Buffers, list[int]]:
    """Return the buffers of the documents' texts, for `build_array`, from the buffers of the logged bytes.

    The second value has the rows whose documents hold opaque values, ascending. `changed` are the rows that have diffs;
    the document that they change is in the row before. Raises UndecodableValue.
    """
    opaque: list[int] = []
    data, offsets, validity, nulls = buffers
    raw = pa.Array.from_buffers(pa.binary(), rows, [validity, offsets, data], nulls)
    is_diff = np.zeros(rows, dtype=bool)
    is_diff[list(changed)] = True
    texts = _texts(pc.if_else(pa.array(is_diff), pa.scalar(None, pa.binary()), raw), opaque)
    if changed:
        made = pa.array([_changed(raw, row) for row in changed], pa.string())
        opaque += [row for row in changed if leaves_opaque(raw[row - 1].as_py(), raw[row].as_py())]
        texts = pc.replace_with_mask(texts, pa.array(is_diff), made)
    validity, offsets, data = texts.buffers()
    return (data if data is not None else pa.py_buffer(b""), offsets, validity, texts.null_count), sorted(opaque)


def changes_document(bitmap: bytes, number: int) -> bool:
    """Return whether the bitmap of an image says that JSON column `number` of the table, from 0 on, holds diffs."""
    return bool(bitmap[number >> 3] >> (number & 7) & 1)


def _texts(raw: pa.Array, opaque: list[int]) -> pa.Array:
    try:
        return to_text(raw, opaque)
    except ValueError as error:
        raise UndecodableValue(next(row for row in range(len(raw)) if _fails(raw.slice(row, 1))), str(error)) from None


def _fails(value: pa.Array) -> bool:
    try:
        to_text(value)
    except ValueError:
        return True
    return False


def _changed(raw: pa.Array, row: int) -> str:
    before, diffs = raw[row - 1].as_py(), raw[row].as_py()
    if before is None or diffs is None:
        raise UndecodableValue(row, "the value is a change of a document that is NULL")
    try:
        return apply_diffs(before, diffs)
    except ValueError as error:
        raise UndecodableValue(row, f"the value does not change the document before: {error}") from None
