"""Random life of sharded tables, by seed: rows, DDL in the same order on all shards but each at its own time, shards
that come, go, change their names and are emptied, and rows that move between shards of a source.

But for rows that move ids are never used twice, so that what is left of dropped and emptied shards stands in the target
to the end.
"""

from __future__ import annotations

import random
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from support.shard_terms import Terms
from support.shard_versions import IDENTITIES, KINDS, WIDER, Column, Version
from unshard.model.table import TableName


def lowered(statement: str) -> str:
    """The statement in lower case, but for its texts: they are values."""
    return re.sub(r"'[^']*'|[^']+", lambda part: part[0] if part[0].startswith("'") else part[0].lower(), statement)


@dataclass
class Shard:
    """One source table. `ids` are its rows; `born` is the shard's own name where `name` is a copy's.

    `fresh` are rows that were inserted since its last DDL.
    """

    source: str
    target: str
    name: str
    version: int = 0
    born: str = ""
    ids: list[int] = field(default_factory=list)
    fresh: set[int] = field(default_factory=set)


@dataclass(frozen=True)
class Step:
    """Statements for one source; what is none of a transaction stands alone."""

    source: str
    statements: tuple[str, ...]


@dataclass
class RandomShards:
    """`<schema>_1` … have the shards, `<schema>_kept` copies of what is dropped or emptied, which is not migrated.
    `never` are ids of rows that were prepared and rolled back: the log has them all the same. `left_out` are those of
    rows that came and went while their shard was held: their changes there are for nobody. `rekeyed` rows got their id
    by an UPDATE: where that is held and the row moves on, the task stops.

    Targets are `t` and `u`, of all sources, and `o_<source>` of one table each.
    """

    chosen: random.Random
    sources: tuple[str, ...]
    schema: str
    terms: Terms = field(default_factory=Terms)
    shards: list[Shard] = field(default_factory=list)
    graves: list[Shard] = field(default_factory=list)
    gone: list[Shard] = field(default_factory=list)
    versions: dict[str, list[Version]] = field(default_factory=dict)
    names: dict[str, set[TableName]] = field(default_factory=dict)
    never: set[int] = field(default_factory=set)
    left_out: set[int] = field(default_factory=set)
    rekeyed: set[int] = field(default_factory=set)
    _count: int = 0
    _tables: int = 0
    _prepared: dict[str, range] = field(default_factory=dict)
    _xa: dict[str, tuple[str, set[str]]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for target in ("t", "u")[: self.chosen.choice((1, 2, 2))]:
            for source in self.sources:
                for _ in range(self.chosen.randint(1, 3)):
                    self._new(source, target, 0)
        for source in self.sources:
            self._new(source, f"o{source}", 0)

    def begin(self) -> Iterator[Step]:
        """The shards with their first rows."""
        for shard in self.shards:
            yield Step(shard.source, (self.versions[shard.target][0].create(shard.name), self._insert(shard)))

    def steps(self, count: int) -> Iterator[Step]:
        """That much of life, then all shards get what they lack."""
        for _ in range(count):
            yield from self._step()
        while behind := [one for one in self.shards if one.version < self._last(one.target)]:
            yield from self._alter(self.chosen.choice(behind))
            yield from self._rows()
        for source in self.sources:
            yield from self._complete(source)
        for grave in self.graves:
            for version in self.versions[grave.target][grave.version + 1 :]:
                yield Step(grave.source, (version.change.format(grave.name),))

    def _step(self) -> Iterator[Step]:
        way = self.chosen.random()
        shard = self.chosen.choice(self.shards)
        if way < 0.62:
            yield from self._rows()
        elif way < 0.82:
            if shard.version == self._last(shard.target):
                if self._last(shard.target) - min(s.version for s in self._of(shard.target)) > 3:
                    return
                self.versions[shard.target].append(self._change(self.versions[shard.target][-1]))
            yield from self._alter(shard)
        elif way < 0.88:
            yield from self._create(shard)
        elif way < 0.92:
            yield from self._rename(shard)
        elif way < 0.97:
            yield from self._drop(shard)
        else:
            yield from self._empty(shard)

    def _rows(self) -> Iterator[Step]:
        source = self.chosen.choice(self.sources)
        own = [shard for shard in self.shards if shard.source == source]
        if self.chosen.random() < 0.1:
            if source in self._xa:
                yield from self._complete(source)
                return
            xid = f"'x{self._next()}'"
            shard = self.chosen.choice(own)
            self._xa[source] = xid, {shard.name}
            before = self._count
            work = tuple(self._insert(shard, known=False) for _ in range(2))
            self._prepared[xid] = range(before + 1, self._count + 1)
            yield Step(source, (f"XA START {xid}", *work, f"XA END {xid}", f"XA PREPARE {xid}"))
            return
        if self.chosen.random() < 0.25:
            yield from self._move(own)
            return
        changes = tuple(self._row(self.chosen.choice(own)) for _ in range(self.chosen.choice((1, 1, 1, 2, 5, 12))))
        yield Step(source, ("BEGIN", *changes, "COMMIT") if len(changes) > 1 else changes)

    def _move(self, own: list[Shard]) -> Iterator[Step]:
        """A row goes to another shard of its target, in one transaction or its DELETE in one before.

        Where nothing is written over, a row that was there before may not go to a shard that lacks a DDL (SHARD-035).
        """
        ways = [(there, to) for there in own for to in own if there is not to and there.target == to.target]
        there, to = self.chosen.choice(ways) if ways else (own[0], own[0])
        free = self.terms.safe or self.terms.mapped or there.version <= to.version
        known = [number for number in there.ids if number not in self.rekeyed and (free or number in there.fresh)]
        if not ways or not known:
            return
        number = self.chosen.choice(known)
        if not free:
            self.left_out.add(number)
        there.ids.remove(number)
        there.fresh.discard(number)
        to.ids.append(number)
        steps = f"DELETE FROM {there.name} WHERE id = {self._id(there, number)}", self._insert(to, ids=[number])
        way = self.chosen.random()
        if way < 0.3:
            yield from (Step(there.source, (step,)) for step in steps)
            return
        ordered = any(key[0] == "u" for version in self.versions[to.target] for key, _ in version.keys)
        either = self.terms.mapped or (self.terms.compact and not ordered)
        yield Step(there.source, ("BEGIN", *(steps[::-1] if way > 0.65 and either else steps), "COMMIT"))

    def _complete(self, source: str) -> Iterator[Step]:
        if source in self._xa:
            xid, _ = self._xa.pop(source)
            how = self.chosen.choice(("COMMIT", "COMMIT", "ROLLBACK"))
            if how == "ROLLBACK":
                self.never.update(self._prepared[xid])
            yield Step(source, (f"XA {how} {xid}",))

    def _free(self, shard: Shard) -> Iterator[Step]:
        if shard.name in self._xa.get(shard.source, ("", set()))[1]:
            yield from self._complete(shard.source)

    def _row(self, shard: Shard) -> str:
        way = self.chosen.random()
        if way < 0.4 or not shard.ids:
            return self._insert(shard)
        number = self.chosen.choice(shard.ids)
        if way < 0.55:
            shard.ids.remove(number)
            return f"DELETE FROM {shard.name} WHERE id = {self._id(shard, number)}"
        if way < 0.65:
            shard.ids.remove(number)
            shard.ids.append(self._next())
            self.rekeyed.add(shard.ids[-1])
            to = self._id(shard, shard.ids[-1])
            return f"UPDATE {shard.name} SET id = {to} WHERE id = {self._id(shard, number)}"
        columns = [c for c in self._at(shard).columns if c.kind]
        changes = [f"{c.name} = {self._value(c)}" for c in columns if self.chosen.random() < 0.5]
        changes = [f"v = {self._next()}", *changes]
        return f"UPDATE {shard.name} SET {', '.join(changes)} WHERE id = {self._id(shard, number)}"

    def _insert(self, shard: Shard, *, known: bool = True, ids: list[int] | None = None) -> str:
        columns = [c for c in self._at(shard).columns if c.kind and self.chosen.random() < 0.7]
        numbers = ids or [self._next() for _ in range(self.chosen.choice((1, 1, 3)))]
        if known and not ids:
            shard.ids += numbers
            shard.fresh.update(numbers)
        rows = [", ".join([self._id(shard, n), "0", *map(self._value, columns)]) for n in numbers]
        names = ", ".join(["id", "v", *(c.name for c in columns)])
        return f"INSERT INTO {shard.name} ({names}) VALUES {', '.join(f'({row})' for row in rows)}"

    def _value(self, column: Column) -> str:
        return self.chosen.choice(KINDS[column.kind])

    def _alter(self, shard: Shard) -> Iterator[Step]:
        yield from self._free(shard)
        shard.version += 1
        shard.fresh.clear()
        change = self._at(shard).change
        text = change.format(shard.name)
        way = self.chosen.random()
        if self.terms.ghosts and way > 0.5 and change.startswith("ALTER") and "RENAME" not in change:
            yield from self._ghost(shard, change)
            return
        if way < 0.2:
            text = lowered(change).format(shard.name)
        elif way < 0.4:
            text = text.replace(" ", "  /* same */ ", 2)
        yield Step(shard.source, (text,))

    def _ghost(self, shard: Shard, change: str) -> Iterator[Step]:
        """The statement as gh-ost brings it."""
        schema, name = shard.name.split(".")
        ghost, old = (f"{schema}.`_{name[1:-1]}_{end}`" for end in ("gho", "del"))
        before, after = (self.versions[shard.target][n].columns for n in (shard.version - 1, shard.version))
        both = ", ".join(["id", "v", *(c.name for c in after if c.kind and c.name in {one.name for one in before})])
        for text in (
            f"CREATE TABLE {ghost} LIKE {shard.name}",
            change.format(ghost),
            f"INSERT INTO {ghost} ({both}) SELECT {both} FROM {shard.name}",
            f"RENAME TABLE {shard.name} TO {old}, {ghost} TO {shard.name}",
            f"DROP TABLE {old}",
        ):
            yield Step(shard.source, (text,))

    def _change(self, last: Version) -> Version:
        columns, keys = list(last.columns), dict(last.keys)
        if self.chosen.random() < 0.15:
            if keys and self.chosen.random() < 0.5:
                key = self.chosen.choice(list(keys))
                del keys[key]
                return self._changed(last, columns, keys, f"DROP INDEX {key} ON {{}}")
            key = self._key(keys, columns)
            unique = "UNIQUE " * (key[0] == "u")
            return self._changed(last, columns, keys, f"CREATE {unique}INDEX {key} ON {{}} (id, {keys[key]})")
        specs, used = [], set[str]()
        for _ in range(self.chosen.choice((1, 1, 2, 3))):
            free = [c for c in columns if c.name not in used]
            way = self.chosen.random()
            if way < 0.4 or not free:
                column = self._column()
                place = self.chosen.randint(0, len(columns))
                after = columns[place - 1].name if place else "v"
                if after in used:
                    place, after = len(columns), ""
                columns.insert(place, column)
                specs.append(f"ADD COLUMN {column.definition}{f' AFTER {after}' if after else ''}")
                used.update((column.name, after))
                continue
            old = self.chosen.choice(free)
            used.add(old.name)
            place = columns.index(old)
            touched = [key for key, name in keys.items() if name == old.name]
            if way < 0.55 and not touched:
                columns.remove(old)
                specs.append(f"DROP COLUMN {old.name}")
            elif way < 0.7 and old.kind:
                kind = WIDER.get(old.kind, old.kind)
                columns[place] = Column(old.name, kind, self._default(kind, null="NOT" not in old.rest))
                if (
                    columns[place] != old
                ):  # whether a death came before or after it could not be told, nor does it matter
                    specs.append(f"MODIFY COLUMN {columns[place].definition}")
            elif way < 0.85:
                columns[place] = Column(f"c{self._next()}", old.kind, old.rest)
                used.add(columns[place].name)
                specs.append(f"RENAME COLUMN {old.name} TO {columns[place].name}")
                keys |= dict.fromkeys(touched, columns[place].name)
            elif not touched and old.kind:
                key = self._key(keys, [old])
                specs.append(f"ADD {'UNIQUE ' * (key[0] == 'u')}INDEX {key} (id, {old.name})")
        if not specs:
            return self._change(last)
        return self._changed(last, columns, keys, f"ALTER TABLE {{}} {', '.join(specs)}")

    def _changed(self, last: Version, columns: list[Column], keys: dict[str, str], change: str) -> Version:
        return replace(last, columns=tuple(columns), keys=tuple(keys.items()), change=change)

    def _key(self, keys: dict[str, str], columns: list[Column]) -> str:
        key = f"{self.chosen.choice('uk')}{self._next()}"
        keys[key] = self.chosen.choice([c.name for c in columns if c.kind] or ["v"])
        return key

    def _column(self) -> Column:
        name = f"c{self._next()}"
        if self.chosen.random() < 0.1:
            return Column(name, "", f"INT AS (v + {self._next()}) {self.chosen.choice(('STORED', 'VIRTUAL'))}")
        kind = self.chosen.choice(list(KINDS))
        return Column(name, kind, self._default(kind))

    def _default(self, kind: str, *, null: bool = False) -> str:
        value = self.chosen.choice([one for one in KINDS[kind] if "REPEAT" not in one])
        return self.chosen.choice((f"NULL DEFAULT {value}", "NULL", f"NOT NULL DEFAULT {value}")[: 3 - null])

    def _create(self, other: Shard) -> Iterator[Step]:
        if other.target[0] == "o":
            return
        own = [s.version for s in self._of(other.target) if s.source == other.source]
        bodies = [version.body for version in self.versions[other.target]]
        last = max(own)
        fit = [n for n in range(min(own), last + 1) if bodies[n] not in bodies[n + 1 : last + 1]]
        shard = self._new(other.source, other.target, self.chosen.choice(fit))
        gone = [one for one in self.gone if (one.source, one.target) == (shard.source, shard.target)]
        if gone and gone[-1].version <= shard.version and self.chosen.random() < 0.7:
            self.gone.remove(gone[-1])
            shard.name = gone[-1].name
        like = [s for s in self._of(other.target) if s.source == other.source and s.version == shard.version]
        if len(like) > 1 and self.chosen.random() < 0.5:
            yield Step(shard.source, (f"CREATE TABLE {shard.name} LIKE {like[0].name}",))
        else:
            yield Step(shard.source, (self._at(shard).create(shard.name),))

    def _rename(self, shard: Shard) -> Iterator[Step]:
        if shard.target[0] == "o" or self.terms.mapped:
            return
        yield from self._free(shard)
        old, shard.name = shard.name, self._name(shard.target)
        self.gone.append(Shard(shard.source, shard.target, old, shard.version))
        how = "RENAME TABLE {} TO {}" if self.chosen.random() < 0.5 else "ALTER TABLE {} RENAME TO {}"
        yield Step(shard.source, (how.format(old, shard.name),))

    def _drop(self, shard: Shard) -> Iterator[Step]:
        if sum(s.source == shard.source for s in self._of(shard.target)) < 2:
            return
        yield from self._bury(shard)
        self.shards.remove(shard)
        self.gone.append(shard)
        yield Step(shard.source, (f"DROP TABLE {shard.name}",))

    def _empty(self, shard: Shard) -> Iterator[Step]:
        yield from self._bury(shard)
        shard.ids.clear()
        yield Step(shard.source, (f"TRUNCATE TABLE {shard.name}",))

    def _bury(self, shard: Shard) -> Iterator[Step]:
        yield from self._free(shard)
        copy = f"`{self.schema}_kept`.`g{self._next()}`"
        grave = Shard(shard.source, shard.target, copy, shard.version, shard.name)
        self.graves.append(grave)
        yield Step(shard.source, (f"CREATE TABLE {grave.name} LIKE {shard.name}",))
        columns = ", ".join(["id", "v", *(c.name for c in self._at(shard).columns if c.kind)])
        yield Step(shard.source, (f"INSERT INTO {grave.name} ({columns}) SELECT {columns} FROM {shard.name}",))

    def _new(self, source: str, target: str, version: int) -> Shard:
        if target not in self.versions:
            self.versions[target] = [Version(self.chosen.choice(IDENTITIES[: 1 if self.terms.mapped else None]))]
        self.shards.append(Shard(source, target, self._name(target), version))
        return self.shards[-1]

    def _name(self, target: str) -> str:
        self._tables += 1
        name = TableName(f"{self.schema}_{self.chosen.randint(1, self.terms.schemas)}", f"{target}_{self._tables}")
        if self.terms.folded and target[0] != "o" and self.chosen.random() < 0.5:
            name = TableName(name.schema, name.table.upper())
        self.names.setdefault(target, set()).add(name)
        return name.quoted

    def _of(self, target: str) -> list[Shard]:
        return [shard for shard in self.shards if shard.target == target]

    def _at(self, shard: Shard) -> Version:
        return self.versions[shard.target][shard.version]

    def _id(self, shard: Shard, number: int) -> str:
        return self._at(shard).identity.literal(number)

    def _last(self, target: str) -> int:
        return len(self.versions[target]) - 1

    def _next(self) -> int:
        self._count += 1
        return self._count
