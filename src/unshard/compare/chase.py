"""Looking again at the keys that differ, until it is known whether they do.

Nothing is held meanwhile: writers go on, and so does the task. A row of the target can be older than that of the
source, since its change is under way. So each key is looked at again once the target has all that the source held at
the look before:

| the look shows | then |
|---|---|
| both rows equal, or none on either side | equal |
| the target's row is what the source's was at the look before | equal: the source has moved on since |
| both rows as at the look before, and unlike | seen once more; after enough looks a difference |
| anything else | the count of looks begins anew |

Two looks are enough while the sources write nothing at all, from before the first to after the second. While they
write, a row that goes to and fro between two values could be met in the wrong one each time: then `BUSY_LOOKS` are
needed, at irregular times. What is not settled when time is up is in flight, which is neither equal nor different.
"""

from __future__ import annotations

import pickle
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from unshard.compare.executor.look import Key, KeyLook, LookOrder, SeenRow, look_again
from unshard.compare.places import LogPlace, SourceWatch, newest_places, wait_until_passed
from unshard.compare.result import RowClass, RowDifference, TableOutcome
from unshard.compare.tables import ComparedTable
from unshard.dump.outcome import disclose
from unshard.errors import UnshardError
from unshard.model.change import Op

RunTasks = Callable[[Sequence[bytes], Callable[[bytes], bytes]], list[bytes]]

QUIET_LOOKS, BUSY_LOOKS = 2, 7
KEYS_AT_ONCE = 200
HASHES_AT_ONCE = 20_000
TASKS_AT_ONCE = 32
MOST_PENDING = 200_000
"""Keys of all tables that are looked at again at most."""

_PAUSE_SECONDS = 1.0


@dataclass(slots=True)
class Suspect:
    """A key that differs, and what was seen of it. `since` is where the sources wrote before the first equal look."""

    key: Key
    last: KeyLook | None = None
    looks: int = 0
    since: Mapping[str, LogPlace | None] = field(default_factory=dict)


@dataclass(slots=True)
class ChasedTable:
    """A table with the keys that are still open."""

    table: ComparedTable
    outcome: TableOutcome
    suspects: dict[Key, Suspect] = field(default_factory=dict)

    def add(self, keys: Sequence[Key], room: int) -> None:
        """Take keys in as long as there is room; the others are counted."""
        for key in keys:
            if key in self.suspects:
                continue
            if room <= 0:
                self.outcome.beyond += 1
                continue
            self.suspects[key] = Suspect(key)
            room -= 1


@dataclass(frozen=True, slots=True)
class KeyChase:
    """Settles the suspects of all tables. `patience_seconds` bounds the whole; `limit` the rows kept of a table."""

    run: RunTasks
    watches: Sequence[SourceWatch]
    patience_seconds: float
    limit: int
    tell: Callable[[str], None]
    stopped: Callable[[], bool]
    at_once: int = 0

    def settle(self, tables: Sequence[ChasedTable]) -> None:
        """Look until all is settled or time is up. What is left then is in flight. Raises SourceError, TargetError."""
        deadline = time.monotonic() + self.patience_seconds
        if not any(one.suspects for one in tables):
            return
        place = newest_places(self.watches)
        while _open_keys(tables):
            passed = wait_until_passed(self.watches, place, deadline, self.stopped)
            before = newest_places(self.watches)
            self._look(tables, before, place, passed)
            place = newest_places(self.watches)
            left = _open_keys(tables)
            if left:
                self.tell(f"{left:,} keys to look at again")
            if time.monotonic() >= deadline or self.stopped():
                break
            if left:
                time.sleep(random.uniform(0.2, 1.0) * _PAUSE_SECONDS)
        self.give_up(tables)

    def give_up(self, tables: Sequence[ChasedTable]) -> None:
        """Tell of all that is not settled as in flight."""
        for one in tables:
            self._give_up(one)

    def _look(
        self,
        tables: Sequence[ChasedTable],
        before: Mapping[str, LogPlace | None],
        last: Mapping[str, LogPlace | None],
        passed: frozenset[str],
    ) -> None:
        works = [(one, keys) for one in tables for keys in _dealt(one)]
        step = min(self.at_once or TASKS_AT_ONCE, TASKS_AT_ONCE)
        for start in range(0, len(works), step):
            some = works[start : start + step]
            outcomes = self.run([pickle.dumps(LookOrder(one.table, keys)) for one, keys in some], look_again)
            after = newest_places(self.watches)
            for (one, keys), outcome in zip(some, outcomes, strict=True):
                try:
                    looks = [KeyLook.from_dict(form) for form in disclose(outcome)]
                except UnshardError as error:
                    if not any(str(known) == str(error) for known in one.outcome.errors):
                        one.outcome.errors.append(error)
                    continue
                late = any(shard.source not in passed for shard in one.table.shards)
                self._judge_all(one, keys, looks, before, after, late=late)

    def _judge_all(
        self,
        one: ChasedTable,
        keys: Sequence[Key],
        looks: Sequence[KeyLook],
        before: Mapping[str, LogPlace | None],
        after: Mapping[str, LogPlace | None],
        *,
        late: bool,
    ) -> None:
        seen = {look.key: look for look in looks}
        for key in keys:
            suspect = one.suspects[key]
            look = seen.get(key)
            if look is None:  # the target takes it for equal to another one of these keys
                del one.suspects[key]
                continue
            if _settled(one, suspect, look, late=late):
                del one.suspects[key]
                continue
            same = suspect.last is not None and _state(suspect.last) == _state(look)
            if late or not same:
                suspect.looks, suspect.since = (0 if late else 1), before
            else:
                suspect.looks += 1
            suspect.last = look
            quiet = all(
                suspect.since.get(shard.source) == after.get(shard.source) is not None for shard in one.table.shards
            )
            if suspect.looks >= (QUIET_LOOKS if quiet else BUSY_LOOKS):
                self._tell_of(one, look, _class_of(one.table, look))
                del one.suspects[key]

    def _tell_of(self, one: ChasedTable, look: KeyLook, kind: RowClass) -> None:
        one.outcome.classes[kind] += 1
        if len(one.outcome.differences) < self.limit:
            one.outcome.differences.append(_difference(one.table, look, kind))

    def _give_up(self, one: ChasedTable) -> None:
        for suspect in one.suspects.values():
            self._tell_of(one, suspect.last or KeyLook(suspect.key), RowClass.IN_FLIGHT)
        one.suspects.clear()


def _open_keys(tables: Sequence[ChasedTable]) -> int:
    return sum(len(one.suspects) for one in tables)


def _dealt(one: ChasedTable) -> Iterator[tuple[Key, ...]]:
    """The keys of a table by task, those together that the target may take for one; few tasks where each reads all."""
    keys = sorted(one.suspects, key=lambda key: [text.casefold() for text in key])
    size = KEYS_AT_ONCE if one.table.key else HASHES_AT_ONCE
    for start in range(0, len(keys), size):
        yield tuple(keys[start : start + size])


def _state(look: KeyLook) -> tuple[object, ...]:
    return tuple(sorted((row.shard or 0, row.digest, n) for row, n in side) for side in (look.source, look.target))


def _digests(side: Sequence[tuple[SeenRow, int]]) -> Counter[int]:
    found: Counter[int] = Counter()
    for row, count in side:
        found[row.digest] += count
    return found


def _settled(one: ChasedTable, suspect: Suspect, look: KeyLook, *, late: bool) -> bool:
    """Whether the key needs no further look, since it is equal, or its row is left out by a rule."""
    single = len(look.source) <= 1 and len(look.target) <= 1
    if single and _digests(look.source) == _digests(look.target):
        return True
    if not one.table.key:
        return suspect.last is not None and not late and _digests(look.target) == _digests(suspect.last.source)
    if not single:
        return False
    if look.source and look.target and look.source[0][0].rest == look.target[0][0].rest:
        one.outcome.spelled += 1
        return True
    if look.source and not look.target and look.source[0][0].left_out:
        one.outcome.left_out += 1
        return True
    last = suspect.last
    return last is not None and len(last.source) <= 1 and not late and _digests(look.target) == _digests(last.source)


def _class_of(table: ComparedTable, look: KeyLook) -> RowClass:
    here, there = (sum(count for _, count in side) for side in (look.source, look.target))
    if table.key and len(look.source) > 1:
        return RowClass.COLLISION
    if _rule_behind(table, look):
        return RowClass.UNCLEAR
    if not table.key:
        return RowClass.MISSING if here > there else RowClass.EXTRA
    return RowClass.MISSING if not there else RowClass.EXTRA if not here else RowClass.CHANGED


def _rule_behind(table: ComparedTable, look: KeyLook) -> str:
    """The filter of the task that may have made the difference, by the changes that it leaves out."""
    here, there = (sum(count for _, count in side) for side in (look.source, look.target))
    for shard in table.shards:
        for rule in shard.filters:
            left = _ops(rule)
            guilty = Op.UPDATE_AFTER in left or Op.UPDATE_BEFORE in left
            guilty = guilty or (here < there and Op.DELETE in left) or (here > there and Op.INSERT in left)
            if guilty:
                return rule.rule
    return ""


def _ops(rule: object) -> frozenset[Op]:
    """The changes that a rule may leave out."""
    events = getattr(rule, "events", None)
    if events is not None:
        named = {"insert": (Op.INSERT,), "update": (Op.UPDATE_BEFORE, Op.UPDATE_AFTER), "delete": (Op.DELETE,)}
        return frozenset(op for event in events for op in named.get(event, tuple(Op)))
    return frozenset(op for op, _ in getattr(rule, "expressions", ((one, "") for one in Op)))


def _difference(table: ComparedTable, look: KeyLook, kind: RowClass) -> RowDifference:
    source = tuple((table.shards[row.shard or 0].name, row.values) for row, _ in look.source)
    target = look.target[0][0] if look.target else None
    columns: tuple[str, ...] = ()
    if target is not None and len(look.source) == 1:
        pairs = zip(table.columns, look.source[0][0].each, target.each, strict=True)
        columns = tuple(column.name for column, ours, theirs in pairs if ours != theirs)
    counts = [sum(count for _, count in side) for side in (look.source, look.target)]
    key = ", ".join(f"{name}={text}" for name, text in zip(table.key, look.key, strict=False))
    times = (counts[0], counts[1]) if not table.key else (1, 1)
    rule = _rule_behind(table, look) if kind is RowClass.UNCLEAR else ""
    values = target.values if target is not None else None
    literals = look.key if table.key else ()
    return RowDifference(kind, key, source, values, columns, times, rule, literals)
