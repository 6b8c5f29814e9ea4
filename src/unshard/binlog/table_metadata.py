"""The optional fields of a TABLE_MAP event: signs, charsets, names, members and keys.

`binlog_row_metadata` decides which of them there are. A field is its type (1 byte), its length (packed integer) and its
value. MariaDB writes 1 to 11, MySQL also 12 and 13; a field of another type is skipped, since it can only add to what
is known. MINIMAL writes 1, 2 or 3, 7, and 10 or 11; FULL writes all; MariaDB's default NO_LOG writes none.

Fields 2 and 3 number the columns that have a collation. The products count differently: MariaDB counts GEOMETRY,
MySQL counts VECTOR (MariaDB logs VECTOR as VARCHAR).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

NUMERIC = frozenset({1, 2, 3, 4, 5, 8, 9, 13, 246})
CHARACTER = frozenset({15, 140, 141, 252, 253, 254})  # VARCHAR, its compressed kin, BLOB, VAR_STRING, STRING
_VECTOR, _ENUM, _SET, _GEOMETRY = 242, 247, 248, 255
_COLLATED = CHARACTER | {_VECTOR}
_COLLATED_BY_MARIADB = CHARACTER | {_GEOMETRY}


class MalformedTableMap(ValueError):
    """A TABLE_MAP that ends early or contradicts itself."""


@dataclass(frozen=True, slots=True)
class Optional:
    """The optional fields of a TABLE_MAP event. A field that is not logged is None.

    These fields have a value for each column, None where they don't apply: `unsigned` (numeric columns), `collations`
    (ids; 63 is binary; None where the product is not known), `members` (ENUM and SET, in bytes of their charset),
    `geometries` (1 POINT … 7 collection, 0 any), `dimensions` (VECTOR). `names` and `visible` have a value for every
    column. `primary_key` has (column number, prefix length in characters or 0) in key order.
    """

    unsigned: tuple[bool | None, ...] | None = None
    collations: tuple[int | None, ...] | None = None
    names: tuple[str, ...] | None = None
    members: tuple[tuple[bytes, ...] | None, ...] | None = None
    geometries: tuple[int | None, ...] | None = None
    primary_key: tuple[tuple[int, int], ...] | None = None
    visible: tuple[bool, ...] | None = None
    dimensions: tuple[int | None, ...] | None = None


class MetadataReader:
    """A cursor that reads forward through bytes of a TABLE_MAP. A read past the end raises MalformedTableMap."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._at = 0

    def left(self) -> int:
        """Return how many bytes are not read yet."""
        return len(self._data) - self._at

    def take(self, size: int) -> bytes:
        """Return the next `size` bytes."""
        if size > self.left():
            raise MalformedTableMap("the event ends early")
        self._at += size
        return self._data[self._at - size : self._at]

    def packed(self) -> int:
        """Return a packed integer: one byte up to 250, else 252, 253 or 254 and two, three or eight bytes."""
        first = self.take(1)[0]
        if first <= 250:
            return first
        sizes = {252: 2, 253: 3, 254: 8}
        if first not in sizes:
            raise MalformedTableMap("251 and 255 begin no packed integer")
        return int.from_bytes(self.take(sizes[first]), "little")

    def name(self) -> str:
        """Return a name: its length in one byte, its text, a zero."""
        text = self.text(self.take(1)[0])
        if self.take(1) != b"\0":
            raise MalformedTableMap("a name has no end")
        return text

    def text(self, size: int) -> str:
        """Return a text of `size` bytes."""
        try:
            return self.take(size).decode()
        except UnicodeDecodeError:
            raise MalformedTableMap("a name is not UTF-8") from None


def read_optional(reader: MetadataReader, types: tuple[int, ...], *, mariadb: bool | None) -> Optional:
    """Read the fields up to the end of `reader`.

    `types` are the real ones (`table_map.real_type`). `mariadb` is whether MariaDB wrote the event; with None the
    collations are left out. Raises MalformedTableMap.
    """
    fields = _FIELDS if mariadb is None else _FIELDS | _COLLATIONS[mariadb]
    found = Optional()
    while reader.left():
        kind = reader.take(1)[0]
        value = reader.take(reader.packed())
        if kind in fields:
            found = fields[kind](found, MetadataReader(value), types)
    return found


def _unsigned(found: Optional, value: MetadataReader, types: tuple[int, ...]) -> Optional:
    return replace(found, unsigned=_bits(value, types, NUMERIC))


def _visible(found: Optional, value: MetadataReader, types: tuple[int, ...]) -> Optional:
    return replace(found, visible=tuple(bool(bit) for bit in _bits(value, types, frozenset(types))))


def _bits(value: MetadataReader, types: tuple[int, ...], chosen: frozenset[int]) -> tuple[bool | None, ...]:
    """Return one bit for each column of the chosen types, the highest bit of the first byte first."""
    count = sum(code in chosen for code in types)
    packed = value.take((count + 7) // 8)
    bits = (bool(byte & (0x80 >> bit)) for byte in packed for bit in range(8))
    return tuple(next(bits) if code in chosen else None for code in types)


def _default_collation(chosen: frozenset[int]) -> Callable[[Optional, MetadataReader, tuple[int, ...]], Optional]:
    """Return a reader of one collation for all columns of the chosen types, then pairs for those that differ.

    A pair is (number among those columns, collation).
    """

    def read(found: Optional, value: MetadataReader, types: tuple[int, ...]) -> Optional:
        own = [value.packed()] * sum(code in chosen for code in types)
        while value.left():
            number, collation = value.packed(), value.packed()
            if number >= len(own):
                raise MalformedTableMap(f"a collation for text column {number} of {len(own)}")
            own[number] = collation
        return _with_collations(found, own, types, chosen)

    return read


def _each_collation(chosen: frozenset[int]) -> Callable[[Optional, MetadataReader, tuple[int, ...]], Optional]:
    def read(found: Optional, value: MetadataReader, types: tuple[int, ...]) -> Optional:
        own = [value.packed() for code in types if code in chosen]
        return _with_collations(found, own, types, chosen)

    return read


def _with_collations(found: Optional, own: list[int], types: tuple[int, ...], chosen: frozenset[int]) -> Optional:
    before = found.collations or (None,) * len(types)
    values = iter(own)
    pairs = zip(types, before, strict=True)
    collations = [next(values) if code in chosen else known for code, known in pairs]
    return replace(
        found,
        collations=tuple(None if code == _GEOMETRY else known for code, known in zip(types, collations, strict=True)),
    )


def _names(found: Optional, value: MetadataReader, types: tuple[int, ...]) -> Optional:
    names = []
    while value.left():
        names.append(value.text(value.packed()))
    if len(names) != len(types):
        raise MalformedTableMap(f"{len(names)} column names for {len(types)} columns")
    return replace(found, names=tuple(names))


def _members(code: int) -> Callable[[Optional, MetadataReader, tuple[int, ...]], Optional]:
    def read(found: Optional, value: MetadataReader, types: tuple[int, ...]) -> Optional:
        known = list(found.members or (None,) * len(types))
        for number in (number for number, kind in enumerate(types) if kind == code):
            known[number] = tuple(value.take(value.packed()) for _ in range(value.packed()))
        return replace(found, members=tuple(known))

    return read


def _numbers_of(code: int, value: MetadataReader, types: tuple[int, ...]) -> tuple[int | None, ...]:
    return tuple(value.packed() if kind == code else None for kind in types)


def _geometries(found: Optional, value: MetadataReader, types: tuple[int, ...]) -> Optional:
    return replace(found, geometries=_numbers_of(_GEOMETRY, value, types))


def _dimensions(found: Optional, value: MetadataReader, types: tuple[int, ...]) -> Optional:
    return replace(found, dimensions=_numbers_of(_VECTOR, value, types))


def _simple_key(found: Optional, value: MetadataReader, types: tuple[int, ...]) -> Optional:
    numbers = []
    while value.left():
        numbers.append((value.packed(), 0))
    return _with_key(found, numbers, types)


def _prefix_key(found: Optional, value: MetadataReader, types: tuple[int, ...]) -> Optional:
    numbers = []
    while value.left():
        numbers.append((value.packed(), value.packed()))
    return _with_key(found, numbers, types)


def _with_key(found: Optional, numbers: list[tuple[int, int]], types: tuple[int, ...]) -> Optional:
    if any(number >= len(types) for number, _ in numbers):
        raise MalformedTableMap(f"the primary key names a column beyond the {len(types)} of the table")
    return replace(found, primary_key=tuple(numbers))


_Field = Callable[[Optional, MetadataReader, tuple[int, ...]], Optional]
_MEMBERED = frozenset({_ENUM, _SET})
_FIELDS: dict[int, _Field] = {
    1: _unsigned,
    4: _names,
    5: _members(_SET),
    6: _members(_ENUM),
    7: _geometries,
    8: _simple_key,
    9: _prefix_key,
    12: _visible,
    13: _dimensions,
}
_COLLATIONS: dict[bool, dict[int, _Field]] = {
    mariadb: {
        2: _default_collation(chosen),
        3: _each_collation(chosen),
        10: _default_collation(_MEMBERED),
        11: _each_collation(_MEMBERED),
    }
    for mariadb, chosen in ((False, _COLLATED), (True, _COLLATED_BY_MARIADB))
}
