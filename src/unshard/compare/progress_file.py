"""The progress file of a comparison: a line of JSON that identifies the comparison, then one for each compared range.

An interrupted comparison resumes from it. A line that was cut off by the end of the process counts as not written. The
first line has the sources' places before the first range was read, and the state of each table of the target: ranges of
a table that has another state now are left out.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TextIO

from unshard.compare.executor.chunk import ChunkFinding
from unshard.compare.pace import CutChunk
from unshard.compare.ranges import Bound, KeyRange
from unshard.compare.tables import ComparedTable
from unshard.crash_point import reach
from unshard.errors import CompareError, Where

_VERSION = 1


@dataclass(frozen=True, slots=True)
class EarlierChunk:
    """A range that an earlier process has compared."""

    table: str
    part: KeyRange
    finding: ChunkFinding


@dataclass(slots=True)
class ProgressFile:
    """The file of the ranges that were compared, in that order. A context manager: it is closed at the end.

    Without a path nothing is stored. `begun` has a form of the places before the first range: those of the earlier
    process, where ranges of it are kept. `states` has the state of each table of the target.
    """

    path: Path | None
    fingerprint: str
    begun: Mapping[str, Any] = field(default_factory=dict)
    states: Mapping[str, str] = field(default_factory=dict)
    earlier: list[EarlierChunk] = field(default_factory=list)
    outdated: frozenset[str] = frozenset()
    _sink: TextIO | None = None

    def __enter__(self) -> ProgressFile:
        """Read what the file has and go on after it. Raises CompareError COMPARE-008 for another comparison's file."""
        if self.path is None:
            return self
        head, found = self._read()
        states = head.get("target", {})
        self.earlier = [one for one in found if states.get(one.table, "") == self.states.get(one.table)]
        self.outdated = frozenset(one.table for one in found) - {one.table for one in self.earlier}
        if self.earlier:
            self.begun = head["begun"]
        self._write()
        return self

    def leave_out(self, tables: Collection[str]) -> None:
        """Forget the earlier ranges of these tables."""
        self.earlier = [one for one in self.earlier if one.table not in tables]
        self.outdated |= frozenset(tables)
        self._write()

    def _write(self) -> None:
        assert self.path is not None
        head = {"version": _VERSION, "comparison": self.fingerprint, "begun": self.begun, "target": self.states}
        lines = [json.dumps(head), *(json.dumps(_form(one)) for one in self.earlier)]
        self.__exit__()
        try:
            self.path.write_text("".join(f"{line}\n" for line in lines))
            self._sink = self.path.open("a")
        except OSError as error:
            raise self._refused(f"it can't be written: {error.strerror}") from None

    def __exit__(self, *failure: object) -> None:
        if self._sink is not None:
            self._sink.close()

    def add(self, chunk: CutChunk, finding: ChunkFinding) -> None:
        """Write a range down; it is on disk when this returns."""
        if self._sink is not None:
            self._sink.write(json.dumps(_form(EarlierChunk(str(chunk.table.name), chunk.part, finding))) + "\n")
            self._sink.flush()
            reach("compare-range-after")

    def remove(self) -> None:
        """Forget it all: the comparison is finished."""
        if self.path is not None:
            self.path.unlink(missing_ok=True)

    def _read(self) -> tuple[dict[str, Any], list[EarlierChunk]]:
        assert self.path is not None
        try:
            lines = self.path.read_text().splitlines(keepends=True)
        except FileNotFoundError:
            return {}, []
        except (OSError, ValueError) as error:
            raise self._refused(str(error)) from None
        whole = [line for line in lines if line.endswith("\n")]
        if not whole:
            return {}, []
        try:
            head, *forms = map(json.loads, whole)
            if head["version"] != _VERSION or head["comparison"] != self.fingerprint:
                raise self._refused("of other tables, structures, rules or ranges")
            return head, [_of(form) for form in forms]
        except (ValueError, KeyError, TypeError):
            raise self._refused("it is no such file") from None

    def _refused(self, fault: str) -> CompareError:
        return CompareError("COMPARE-008", Where(file=str(self.path)), values={"file": self.path, "fault": fault})


def fingerprint_of(tables: Sequence[ComparedTable], **settings: Any) -> str:
    """Return a digest of what is compared: another one means other ranges, or other rows in them."""
    described = [
        {
            "table": str(table.name),
            "columns": [[c.name, c.form.kind, c.form.trimmed] for c in table.columns],
            "key": [table.key, table.range_key],
            "condition": table.condition,
            "shards": [
                [
                    shard.name,
                    shard.endpoint.host,
                    shard.endpoint.port,
                    shard.where,
                    list(shard.mapping.mark) if shard.mapping is not None else None,
                    [[one.column.name, str(one.value)] for one in shard.constants],
                    [column.to_dict() for column in shard.read.columns],
                ]
                for shard in table.shards
            ],
            "target": [table.endpoint.host, table.endpoint.port, [c.to_dict() for c in table.read.columns]],
        }
        for table in tables
    ]
    text = json.dumps([described, settings], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:32]


def _form(one: EarlierChunk) -> dict[str, Any]:
    return {"table": one.table, "lower": one.part.lower, "upper": one.part.upper, "finding": one.finding.to_dict()}


def _of(form: dict[str, Any]) -> EarlierChunk:
    part = KeyRange(_bound(form["lower"]), _bound(form["upper"]))
    return EarlierChunk(form["table"], part, ChunkFinding.from_dict(form["finding"]))


def _bound(form: list[str] | None) -> Bound | None:
    return None if form is None else tuple(form)
