"""The result of a comparison: differences by key, a verdict for each table, and one for all."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection
from dataclasses import dataclass, field, replace
from enum import StrEnum
from typing import Any

from unshard.compare.tables import ComparedTable
from unshard.errors import UnshardError
from unshard.model.table import TableName


class RowClass(StrEnum):
    """The class of a row that differs.

    MISSING in the target; EXTRA there, with no source row; CHANGED; COLLISION: two source rows have one key of the
    target; IN_FLIGHT: it kept changing, or its changes did not arrive in time; UNCLEAR: a rule of the task may have
    made the difference. The last two are no differences, and no equality either.
    """

    MISSING = "missing"
    EXTRA = "extra"
    CHANGED = "changed"
    COLLISION = "collision"
    IN_FLIGHT = "in flight"
    UNCLEAR = "unclear"


DIFFERENT = frozenset({RowClass.MISSING, RowClass.EXTRA, RowClass.CHANGED, RowClass.COLLISION})


class CompareVerdict(StrEnum):
    """The verdict of a comparison.

    EQUAL: every row was compared, and is equal. UNKNOWN: no row is known to differ, and not every row is known to be
    equal.
    """

    EQUAL = "equal"
    DIFFERENT = "different"
    UNKNOWN = "unknown"


EXIT_CODES = {CompareVerdict.EQUAL: 0, CompareVerdict.DIFFERENT: 1, CompareVerdict.UNKNOWN: 2}


@dataclass(frozen=True, slots=True)
class LastChange:
    """The last change of a row in a source's relay log: the row event's place, its transaction's GTID, its time."""

    source: str
    position: str
    gtid: str
    time: str
    statement: str

    def to_dict(self) -> dict[str, str]:
        """Return the JSON form."""
        place = {"source": self.source, "position": self.position, "gtid": self.gtid}
        return {**place, "time": self.time, "statement": self.statement}

    def __str__(self) -> str:
        gtid = f", GTID {self.gtid}" if self.gtid else ""
        return f"{self.statement} in {self.source} at {self.position}{gtid}, {self.time}"


@dataclass(frozen=True, slots=True)
class RowDifference:
    """A key whose rows differ. `source` has the rows as they should be in the target, with the source table of each.

    `columns` are the columns that differ. `times` is how often the row is there on either side, for a table without a
    key. `rule` names the rule that may have caused an UNCLEAR difference. `literals` are the values of the key as SQL
    literals; for a table without a key, `row_hash` is the hash of the row's columns but those that both ends compute.

    `shaped_by` are the task's rules that shape rows of its source tables. `last_change` is that of the row; where it is
    not known, `change_note` says why.
    """

    kind: RowClass
    key: str
    source: tuple[tuple[str, dict[str, str | None]], ...] = ()
    target: dict[str, str | None] | None = None
    columns: tuple[str, ...] = ()
    times: tuple[int, int] = (1, 1)
    rule: str = ""
    literals: tuple[str, ...] = ()
    row_hash: str = ""
    shaped_by: tuple[str, ...] = ()
    last_change: LastChange | None = None
    change_note: str = ""

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        form: dict[str, Any] = {"class": self.kind.value, "key": self.key, "columns": list(self.columns)}
        form["source"] = [{"table": name, "row": row} for name, row in self.source]
        form["target"] = self.target
        if self.times != (1, 1):
            form["times"] = {"source": self.times[0], "target": self.times[1]}
        form["shaped_by"] = list(self.shaped_by)
        form["last_change"] = self.last_change.to_dict() if self.last_change is not None else None
        if self.change_note:
            form["last_change_unknown"] = self.change_note
        return {**form, "rule": self.rule} if self.rule else form


@dataclass(slots=True)
class TableOutcome:
    """The result of comparing one target table.

    `beyond` counts rows that differed at the first look, and were too many to look at again. `spelled` counts keys that
    are spelled differently but equal for the target; `left_out` counts rows that the task's rules leave out. Neither is
    a difference. `skipped` counts ranges that a sample leaves out.
    """

    name: TableName
    sources: tuple[str, ...] = ()
    key: tuple[str, ...] = ()
    source_rows: int = 0
    target_rows: int = 0
    chunks: int = 0
    skipped: int = 0
    classes: Counter[RowClass] = field(default_factory=Counter)
    differences: list[RowDifference] = field(default_factory=list)
    beyond: int = 0
    spelled: int = 0
    left_out: int = 0
    errors: list[UnshardError] = field(default_factory=list)
    structure_differs: bool = False
    complete: bool = False

    @classmethod
    def of(cls, table: ComparedTable) -> TableOutcome:
        """Return an outcome without results yet."""
        return cls(table.name, tuple(shard.name for shard in table.shards), table.key)

    def add_error(self, error: UnshardError) -> None:
        """Add an error, unless it says what another one says."""
        if not any(str(known) == str(error) for known in self.errors):
            self.errors.append(error)

    def surplus_by_hash(self) -> Counter[str]:
        """Return, of a table without a key, how many more rows with a hash the sources have than the target.

        It is 0 for rows that differ only in columns that both ends compute.
        """
        found: Counter[str] = Counter()
        for one in self.differences:
            found[one.row_hash] += one.times[0] - one.times[1]
        return found

    def computed_otherwise(self, generated: frozenset[str]) -> frozenset[str]:
        """Return those of the `generated` columns in which alone rows differ that are equal in all others."""
        if self.key:
            changed = (one for one in self.differences if one.kind is RowClass.CHANGED)
            return frozenset(name for one in changed if generated.issuperset(one.columns) for name in one.columns)
        ours = {one.row_hash: one.source[0][1] for one in self.differences if one.kind is RowClass.MISSING}
        pairs = (
            (ours[one.row_hash], one.target)
            for one in self.differences
            if one.kind is RowClass.EXTRA and one.row_hash in ours and one.target is not None
        )
        return frozenset(name for here, there in pairs for name in generated if here[name] != there[name])

    @property
    def verdict(self) -> CompareVerdict:
        """The table's verdict: different, unknown where a part is open or failed, or equal."""
        if self.structure_differs or any(self.classes[kind] for kind in DIFFERENT):
            return CompareVerdict.DIFFERENT
        open_rows = self.classes[RowClass.IN_FLIGHT] + self.classes[RowClass.UNCLEAR] + self.beyond
        return CompareVerdict.UNKNOWN if self.errors or open_rows or not self.complete else CompareVerdict.EQUAL

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form."""
        return {
            "table": str(self.name),
            "verdict": self.verdict.value,
            "sources": list(self.sources),
            "key": list(self.key),
            "source_rows": self.source_rows,
            "target_rows": self.target_rows,
            "chunks": self.chunks,
            "chunks_left_out_by_sample": self.skipped,
            "counts": {kind.value: self.classes[kind] for kind in RowClass},
            "not_looked_at_again": self.beyond,
            "keys_spelled_otherwise": self.spelled,
            "left_out_by_rules": self.left_out,
            "differences": [one.to_dict() for one in self.differences],
            "errors": [_error_form(error) for error in self.errors],
        }


@dataclass(frozen=True, slots=True)
class SourcePlace:
    """The positions of one source during a comparison.

    `begin` and `end` are the ends of its binlog before the first read and after the last one; `applied` is the target's
    checkpoint after the last read.
    """

    source: str
    begin: str
    end: str
    applied: str

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form. `exact`: nothing was written meanwhile, and all was in the target."""
        exact = bool(self.begin) and self.begin == self.end == self.applied
        form = {"source": self.source, "begin": self.begin, "end": self.end, "applied": self.applied}
        return {**form, "exact": exact}


@dataclass(frozen=True, slots=True)
class ComparisonOutcome:
    """The result of a comparison: that of each table, and errors and notes that concern no single table."""

    tables: tuple[TableOutcome, ...]
    errors: tuple[UnshardError, ...] = ()
    places: tuple[SourcePlace, ...] = ()
    notes: tuple[str, ...] = ()
    sample: int = 100
    seconds: float = 0.0

    @property
    def verdict(self) -> CompareVerdict:
        """The verdict over all tables; unknown where there is no table."""
        verdicts = {table.verdict for table in self.tables}
        if CompareVerdict.DIFFERENT in verdicts:
            return CompareVerdict.DIFFERENT
        known = bool(self.tables) and not self.errors and CompareVerdict.UNKNOWN not in verdicts
        return CompareVerdict.EQUAL if known else CompareVerdict.UNKNOWN

    def with_tables(self, later: ComparisonOutcome, instead: Collection[TableName]) -> ComparisonOutcome:
        """Return the outcome with a later one's tables for those of `instead`, from its begin to the end of the later.

        Notes on these tables are those of the later one.
        """
        prefixes = tuple(f"{name}: " for name in instead)
        notes = (note for note in self.notes if not note.startswith(prefixes))
        ends = {place.source: place for place in later.places}
        kept = (one for one in self.tables if one.name not in instead)
        return replace(
            self,
            tables=tuple(sorted((*kept, *later.tables), key=lambda one: str(one.name))),
            errors=tuple({str(error): error for error in (*self.errors, *later.errors)}.values()),
            places=tuple(replace(ends.get(one.source, one), begin=one.begin) for one in self.places),
            notes=tuple(dict.fromkeys((*notes, *later.notes))),
            seconds=self.seconds + later.seconds,
        )

    @property
    def exit_code(self) -> int:
        """Exit code of the command for the verdict."""
        return EXIT_CODES[self.verdict]

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form, which `--json` prints."""
        return {
            "verdict": self.verdict.value,
            "exit_code": self.exit_code,
            "sample_percent": self.sample,
            "seconds": round(self.seconds, 1),
            "sources": [place.to_dict() for place in self.places],
            "tables": [table.to_dict() for table in self.tables],
            "errors": [_error_form(error) for error in self.errors],
            "notes": list(self.notes),
        }


def _error_form(error: UnshardError) -> dict[str, Any]:
    where = {name: value for name, value in error.where.to_dict().items() if value}
    return {"code": error.code, "message": error.message, "why": error.cause, "what_to_do": error.hint, **where}
