"""The structure of a table as its TABLE_MAP alone describes it, for readers that have no server to ask.

What the binlog doesn't log is not made up: a column without a name is `@1`, `@2` … by number, as mysqlbinlog calls
it; text without a charset stays bytes; ENUM and SET without members stay numbers. `undescribed` lists what is
missing. Only signs have to be taken one way or the other: integers of unknown sign read as signed.
"""

from __future__ import annotations

from collections.abc import Sequence

from unshard.binlog import layout
from unshard.binlog.table_map import TableMap, real_type
from unshard.binlog.table_metadata import CHARACTER, NUMERIC
from unshard.errors import BinlogError, Where
from unshard.model.table import Column, Index, Table
from unshard.mysql.charsets import to_text
from unshard.mysql.collations import charset_of

_NAMES = {
    layout.TINY: "tinyint",
    layout.SHORT: "smallint",
    layout.INT24: "mediumint",
    layout.LONG: "int",
    layout.LONGLONG: "bigint",
    layout.FLOAT: "float",
    layout.DOUBLE: "double",
    layout.NEWDECIMAL: "decimal",
    layout.YEAR: "year",
    layout.BIT: "bit",
    layout.ENUM: "enum",
    layout.SET: "set",
    layout.JSON: "json",
    layout.GEOMETRY: "geometry",
    layout.VECTOR: "vector",
    layout.STRING: "char",
    **dict.fromkeys((layout.DATE, layout.NEWDATE), "date"),
    **dict.fromkeys((layout.TIME, layout.TIME2), "time"),
    **dict.fromkeys((layout.DATETIME, layout.DATETIME2), "datetime"),
    **dict.fromkeys((layout.TIMESTAMP, layout.TIMESTAMP2), "timestamp"),
    **dict.fromkeys((layout.VARCHAR, layout.VAR_STRING, layout.COMPRESSED_VARCHAR), "varchar"),
    **dict.fromkeys((layout.BLOB, layout.COMPRESSED_BLOB), "blob"),
}
_BLOBS = {1: "tiny", 2: "", 3: "medium", 4: "long"}
_FRACTIONAL = frozenset({layout.TIME2, layout.DATETIME2, layout.TIMESTAMP2})


def undescribed(table_map: TableMap) -> frozenset[str]:
    """Return the facts that the event lacks, of `names`, `signs`, `charsets`, `members`.

    Empty under binlog_row_metadata=FULL.
    """
    logged = table_map.optional
    codes = {real_type(code, meta)[0] for code, meta in zip(table_map.types, table_map.metadata, strict=True)}
    open_facts = {
        "names": logged.names is None,
        "signs": logged.unsigned is None and bool(codes & NUMERIC),
        "charsets": logged.collations is None and bool(codes & CHARACTER),
        "members": logged.members is None and bool(codes & {layout.ENUM, layout.SET}),
    }
    return frozenset(name for name, is_open in open_facts.items() if is_open)


def describe_table(table_map: TableMap, where: Where | None = None) -> Table:
    """Return a structure that `plan_layouts` accepts for this event.

    Raises BinlogError BINLOG-043, at `where`, for a collation id of no known charset.
    """
    place = where or Where(table=str(table_map.name))
    columns = tuple(_column(table_map, number, place) for number in range(len(table_map.types)))
    key = table_map.optional.primary_key
    indexes: tuple[Index, ...] = ()
    if key:
        names = tuple(columns[number].name for number, _ in key)
        indexes = (Index("PRIMARY", names, tuple(prefix for _, prefix in key), unique=True),)
    return Table(table_map.name, columns, indexes)


def _column(table_map: TableMap, number: int, where: Where) -> Column:
    meta = table_map.metadata[number]
    code, size = real_type(table_map.types[number], meta)
    logged = table_map.optional
    name = logged.names[number] if logged.names else f"@{number + 1}"
    unsigned = bool(logged.unsigned and logged.unsigned[number])
    collation = logged.collations[number] if logged.collations else None
    charset = _charset(collation, name, where)
    kind = _kind(code, meta, collation is not None, charset)
    members = logged.members[number] if logged.members else None
    bits = 8 * meta[1] + meta[0] if code == layout.BIT else 0
    precision, scale = meta if code == layout.NEWDECIMAL else (bits, 0)
    fsp = meta[0] if code in _FRACTIONAL else 0
    # lengths are in bytes here, and `length` counts characters of text: 0 fits every one
    packed = code in layout.COMPRESSED  # with a header byte
    length = {"binary": size, "varbinary": int.from_bytes(meta, "little") - packed}.get(kind, 0)
    return Column(
        name=name,
        type=kind,
        definition=kind + (" unsigned" if unsigned else " COMPRESSED" if packed else ""),
        nullable=not table_map.nullable or table_map.nullable[number],
        charset=charset if code in CHARACTER or collation is not None else None,
        collation="binary" if code in CHARACTER and charset == "binary" else None,
        length=length,
        precision=precision,
        scale=scale,
        fsp=fsp,
        members=_members(members or (), charset),
        invisible=bool(logged.visible and not logged.visible[number]),
    )


def _charset(collation: int | None, name: str, where: Where) -> str:
    try:
        return "binary" if collation is None else charset_of(collation)
    except KeyError:
        raise BinlogError("BINLOG-043", where, values={"column": name, "collation": collation}) from None


def _members(members: Sequence[bytes], charset: str) -> tuple[str, ...]:
    """Return the members of each ENUM or SET; members whose bytes are not text of the charset count as not logged."""
    try:
        return tuple(to_text(member, charset) for member in members)
    except (KeyError, UnicodeDecodeError):
        return ()


def _kind(code: int, meta: bytes, has_charset: bool, charset: str) -> str:
    """Return the type's name. Of types for text or bytes, it is the one for bytes only where the binlog says so."""
    name = _NAMES.get(code, f"type {code}")
    if code in (layout.BLOB, layout.COMPRESSED_BLOB):
        return _BLOBS.get(meta[0], "") + ("blob" if charset == "binary" else "text")
    if has_charset and charset == "binary":
        return {"char": "binary", "varchar": "varbinary"}.get(name, name)
    return name
