"""Repeatedly compares the keys that differ, until each is known to be equal or different.

Nothing is locked meanwhile: the writers continue, and so does the task. A row of the target can be older than that of
the source, because its change is not applied yet. So each key is checked again once the target has everything that the
source had at the previous check:

| the check shows | then |
|---|---|
| both rows equal, or no row on either side | equal |
| the target's row is what the source's was at the previous check | equal: the source has changed since |
| both rows as at the previous check, and different | counted; after enough checks it is a difference |
| anything else | the count starts again |

Two checks are enough if the sources write nothing at all from before the first to after the second. If they write, a
row that changes to and fro between two values could be read with the wrong one each time. Then `BUSY_LOOKS` checks are
needed, at irregular times. A key that is undecided when time is up is *in flight*: neither equal nor different.
"""

from __future__ import annotations

import pickle
import random
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from unshard.compare.executor.keys import Key, is_spelled, weights_of
from unshard.compare.executor.look import KeyLook, LookOrder, SeenRow, look_again
from unshard.compare.executor.rows import LOCKED
from unshard.compare.executor.silent import SILENT
from unshard.compare.places import LogPlace, SourceWatch, newest_places, wait_until_passed
from unshard.compare.result import RowClass, RowDifference, TableOutcome
from unshard.compare.source_load import SourceLoad
from unshard.compare.tables import ComparedTable
from unshard.errors import UnshardError, disclose
from unshard.model.change import Op
from unshard.run_tasks import RunTasks

QUIET_LOOKS, BUSY_LOOKS = 2, 7
KEYS_AT_ONCE = 200
HASHES_AT_ONCE = 20_000
TASKS_AT_ONCE = 32
MOST_PENDING = 200_000
"""Keys of all tables that are looked at again at most."""

_PAUSE_SECONDS = 1.0


@dataclass(slots=True)
class Suspect:
    """A key whose rows differ, and the result of the last look at it. There are many, so only some keep their rows.

    `state` is a hash of the rows of both sides. `source` is the hash of the only row in the sources, None without one;
    for a table without a key it is how often the row is there. `single`: there was at most one row in the sources.
    `last` has the rows if they are to be shown. `looks` counts the looks with the same state; `since` is where the
    sources wrote before the first of them. `spellings` are other keys that the target takes for this one. `weight` is
    equal for such keys; (): not asked for.
    """

    key: Key
    state: int | None = None
    source: int | None = None
    single: bool = False
    last: KeyLook | None = None
    looks: int = 0
    since: Mapping[str, LogPlace | None] = field(default_factory=dict)
    spellings: tuple[Key, ...] = ()
    weight: Key = ()


@dataclass(slots=True)
class ChasedTable:
    """A table with those of its keys that are not yet known to be equal or different."""

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
    """The repeated comparison of the suspects of all tables, until each is known to be equal or different.

    `patience_seconds` bounds the time for all tables; `limit` is the number of differences kept of a table. A look
    reads rows with their values only for as many keys of a table as may still be kept. `run` waits for tables that are
    locked: the keys of one that still is are given up. With `keeps_locked` they stay for the next look.
    """

    run: RunTasks
    watches: Sequence[SourceWatch]
    patience_seconds: float
    limit: int
    tell: Callable[[str], None]
    stopped: Callable[[], bool]
    at_once: int = 0
    load: SourceLoad | None = None
    keeps_locked: bool = False

    def settle(self, tables: Sequence[ChasedTable]) -> None:
        """Look until all is settled or time is up; the remaining ones are in flight. Raises SourceError, TargetError.

        Rests for the sources' sake don't count.
        """
        begun, rested = time.monotonic(), self.rested
        if not any(one.suspects for one in tables):
            return
        place = newest_places(self.watches)
        while _open_keys(tables):
            deadline = begun + self.patience_seconds + self.rested - rested
            passed = wait_until_passed(self.watches, place, deadline, self.stopped)
            before = newest_places(self.watches)
            self.look(tables, before, passed)
            place = newest_places(self.watches)
            left = _open_keys(tables)
            if left:
                self.tell(f"{left:,} keys to look at again")
            if time.monotonic() >= begun + self.patience_seconds + self.rested - rested or self.stopped():
                break
            if left:
                time.sleep(random.uniform(0.2, 1.0) * _PAUSE_SECONDS)
        self.give_up(tables)

    @property
    def rested(self) -> float:
        """Seconds for which it has rested."""
        return self.load.rested if self.load is not None else 0.0

    def give_up(self, tables: Sequence[ChasedTable]) -> None:
        """Report all that is not settled as in flight."""
        for one in tables:
            self._give_up(one)

    def look(
        self, tables: Sequence[ChasedTable], before: Mapping[str, LogPlace | None], passed: frozenset[str]
    ) -> None:
        """Look at all suspects once, and settle those of which enough is known. Raises SourceError, TargetError.

        `before` is where the sources write, asked right before. `passed` are the sources of which the target has all
        that they had at the look before.
        """
        works = [
            (one, LookOrder(one.table, keys, shown=at < self.limit - len(one.outcome.differences)))
            for one in tables
            if _weigh(one)
            for at, keys in _dealt(one)
        ]
        step = min(self.at_once or TASKS_AT_ONCE, TASKS_AT_ONCE)
        for start in range(0, len(works), step):
            some = works[start : start + step]
            outcomes = self.run([pickle.dumps(order) for _, order in some], look_again)
            after = newest_places(self.watches)
            busy = 0.0
            for (one, order), outcome in zip(some, outcomes, strict=True):
                try:
                    found = disclose(outcome)
                except UnshardError as error:
                    one.outcome.add_error(error)
                    if error.code == SILENT or (error.code == LOCKED and not self.keeps_locked):
                        self._give_up(one)
                    continue
                busy += found["source_seconds"]
                looks = [KeyLook.from_dict(form) for form in found["looks"]]
                late = any(shard.source not in passed for shard in one.table.shards)
                self._judge_all(one, order, looks, before, after, late=late)
            if self.load is not None:
                self.load.rest(busy)

    def _judge_all(
        self,
        one: ChasedTable,
        order: LookOrder,
        looks: Sequence[KeyLook],
        before: Mapping[str, LogPlace | None],
        after: Mapping[str, LogPlace | None],
        *,
        late: bool,
    ) -> None:
        seen = {look.key: look for look in looks}
        for key in order.keys:
            suspect = one.suspects.get(key)
            if suspect is None:  # another spelling of a suspect
                continue
            look = seen.get(key)
            if look is None:  # the target takes it for equal to another one of these keys
                del one.suspects[key]
                continue
            if _settled(one, suspect, look, late=late):
                del one.suspects[key]
                continue
            state = hash(_state(look))
            if late or suspect.state != state:
                suspect.looks, suspect.since = (0 if late else 1), before
            else:
                suspect.looks += 1
            suspect.state, suspect.single = state, len(look.source) <= 1
            suspect.source, suspect.spellings = _only_row(one.table, look), look.spellings
            suspect.last = look if order.shown else None
            quiet = all(
                suspect.since.get(shard.source) == after.get(shard.source) is not None for shard in one.table.shards
            )
            room = len(one.outcome.differences) < self.limit
            if suspect.looks >= (QUIET_LOOKS if quiet else BUSY_LOOKS) and (order.shown or not room):
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


def _weigh(one: ChasedTable) -> bool:
    """Ask the target for the weights of a table's keys, if one task doesn't take them all. False where that fails."""
    if len(one.suspects) <= KEYS_AT_ONCE or not is_spelled(one.table):
        return True
    unknown = [suspect.key for suspect in one.suspects.values() if not suspect.weight]
    try:
        weights = weights_of(one.table, unknown) if unknown else {}
    except UnshardError as error:
        one.outcome.add_error(error)
        return False
    for key, weight in weights.items():
        one.suspects[key].weight = weight
    return True


def _dealt(one: ChasedTable) -> Iterator[tuple[int, tuple[Key, ...]]]:
    """Yield a table's keys by task, with the number of those before them.

    Keys that the target may take for one stay together. There are few tasks where each reads all rows.
    """
    keys = sorted(one.suspects.values(), key=_place)
    size = KEYS_AT_ONCE if one.table.key else HASHES_AT_ONCE
    start = 0
    while start < len(keys):
        end = min(start + size, len(keys))
        while end < len(keys) and _place(keys[end]) == _place(keys[end - 1]):
            end += 1
        yield start, tuple(key for suspect in keys[start:end] for key in (suspect.key, *suspect.spellings))
        start = end


def _place(suspect: Suspect) -> Key:
    return suspect.weight or suspect.key


def _state(look: KeyLook) -> tuple[object, ...]:
    return tuple(
        tuple(sorted((row.shard or 0, row.digest, n) for row, n in side)) for side in (look.source, look.target)
    )


def _only_row(table: ComparedTable, look: KeyLook) -> int | None:
    if not table.key:
        return sum(count for _, count in look.source)
    return look.source[0][0].digest if len(look.source) == 1 else None


def _arrived(table: ComparedTable, suspect: Suspect, look: KeyLook) -> bool:
    """Return whether the target has the row that the sources had at the look before."""
    if suspect.state is None or not suspect.single:
        return False
    if not table.key:
        return sum(count for _, count in look.target) == suspect.source
    return (look.target[0][0].digest if look.target else None) == suspect.source


def _digests(side: Sequence[tuple[SeenRow, int]]) -> Counter[int]:
    found: Counter[int] = Counter()
    for row, count in side:
        found[row.digest] += count
    return found


def _settled(one: ChasedTable, suspect: Suspect, look: KeyLook, *, late: bool) -> bool:
    """Return whether the key needs no further look: it is equal, or a rule leaves its row out."""
    single = len(look.source) <= 1 and len(look.target) <= 1
    if single and _digests(look.source) == _digests(look.target):
        return True
    if not one.table.key:
        return not late and _arrived(one.table, suspect, look)
    if not single:
        return False
    if look.source and look.target and look.source[0][0].rest == look.target[0][0].rest:
        one.outcome.spelled += 1
        return True
    if look.source and not look.target and look.source[0][0].left_out:
        one.outcome.left_out += 1
        return True
    return not late and _arrived(one.table, suspect, look)


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
    """Return the filter of the task that may have made the difference, by the changes that it excludes; "" for none."""
    here, there = (sum(count for _, count in side) for side in (look.source, look.target))
    for shard in table.shards:
        for rule in shard.filters:
            left = _ops(rule)
            guilty = Op.UPDATE_AFTER in left or Op.UPDATE_BEFORE in left
            guilty = guilty or (here < there and Op.DELETE in left) or (here > there and Op.INSERT in left)
            if guilty:
                return rule.rule
    return table.kept_by if here < there else ""


def _ops(rule: object) -> frozenset[Op]:
    """Return the kinds of changes that a rule may exclude."""
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
    literals, row_hash = (look.key, "") if table.key else ((), _written_hash(look))
    own = [table.shards[row.shard or 0] for row, _ in look.source] or table.shards
    shaped_by = tuple(dict.fromkeys(name for shard in own for name in shard.rules))
    return RowDifference(kind, key, source, values, columns, times, rule, literals, row_hash, shaped_by)


def _written_hash(look: KeyLook) -> str:
    """Return the hash by which a row of a table without a key is written."""
    return next((str(row.rest) for row, _ in (*look.source, *look.target)), look.key[0])
