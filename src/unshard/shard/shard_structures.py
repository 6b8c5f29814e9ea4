"""ShardStructures: what one decision about a merged table asks again and again of its shards, each computed once. Pure.

Thousands of shards have few structures, and thousands of requests lead to few joins.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping

from unshard.schema.definition import TableDefinition
from unshard.shard.join import IncompatibleError, joined_structure
from unshard.shard.merged_parts import MergedShard, ShardId

Join = tuple[TableDefinition, dict[str, str]]
"""The target structure for some shards, and the rules of its columns."""


class ShardStructures:
    """The structures in force of the shards of one record. `base` and `rules` are the target's.

    `absent`: further shards, which have columns and take no part in a join.
    """

    def __init__(
        self,
        shards: Mapping[ShardId, MergedShard],
        absent: Mapping[ShardId, MergedShard],
        base: TableDefinition,
        rules: Mapping[str, str],
    ) -> None:
        self._shards, self._absent, self._base, self._rules = shards, absent, base, rules
        self._place = {shard: place for place, shard in enumerate(sorted(shards))}
        self._known: dict[int, tuple[TableDefinition, list[int]]] = {}
        for shard, place in self._place.items():
            structure = shards[shard].structure
            self._known.setdefault(id(structure), (structure, []))[1].append(place)
        self._joins: dict[tuple[int, ...], Join | str] = {}
        self._owners: dict[str, list[str]] = {}

    def joined_with(self, shard: ShardId, structure: TableDefinition) -> Join:
        """Return the target structure where the shard has this structure, and the rules. Raises IncompatibleError."""
        own, place = id(self._shards[shard].structure), self._place[shard]
        first = {id(structure): (place, structure)}
        for key, (one, places) in self._known.items():
            left = places if key != own else [other for other in places[:2] if other != place]
            if left and (key not in first or left[0] < first[key][0]):
                first[key] = left[0], one
        tables = [one for _, one in sorted(first.values(), key=lambda pair: pair[0])]
        names = tuple(map(id, tables))
        if names not in self._joins:
            try:
                self._joins[names] = joined_structure(tables, self._base, self._rules)
            except IncompatibleError as error:
                self._joins[names] = str(error)
        found = self._joins[names]
        if isinstance(found, str):
            raise IncompatibleError(found)
        return found

    def without(self, shards: Iterable[ShardId]) -> list[TableDefinition]:
        """Return the structures of all other shards, each once."""
        out = Counter(id(self._shards[shard].structure) for shard in shards)
        return [one for key, (one, places) in self._known.items() if len(places) > out[key]]

    def owners(self, name: str) -> list[str]:
        """Return the shards that have a column, in lower case, as texts in their order."""
        if name not in self._owners:
            everyone = (*self._shards.items(), *self._absent.items())
            self._owners[name] = sorted(str(one) for one, state in everyone if name in state.names)
        return self._owners[name]
