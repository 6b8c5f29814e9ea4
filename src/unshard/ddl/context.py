"""The upstream session in which a statement was run: what the statement's event in the binlog records of it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from unshard.binlog.query import QueryEvent
from unshard.errors import Where

_MODES: Mapping[int, str] = {
    0: "REAL_AS_FLOAT",
    1: "PIPES_AS_CONCAT",
    2: "ANSI_QUOTES",
    3: "IGNORE_SPACE",
    4: "IGNORE_BAD_TABLE_OPTIONS",
    5: "ONLY_FULL_GROUP_BY",
    6: "NO_UNSIGNED_SUBTRACTION",
    7: "NO_DIR_IN_CREATE",
    8: "POSTGRESQL",
    9: "ORACLE",
    10: "MSSQL",
    11: "DB2",
    12: "MAXDB",
    13: "NO_KEY_OPTIONS",
    14: "NO_TABLE_OPTIONS",
    15: "NO_FIELD_OPTIONS",
    16: "MYSQL323",
    17: "MYSQL40",
    18: "ANSI",
    19: "NO_AUTO_VALUE_ON_ZERO",
    20: "NO_BACKSLASH_ESCAPES",
    21: "STRICT_TRANS_TABLES",
    22: "STRICT_ALL_TABLES",
    23: "NO_ZERO_IN_DATE",
    24: "NO_ZERO_DATE",
    25: "ALLOW_INVALID_DATES",
    26: "ERROR_FOR_DIVISION_BY_ZERO",
    27: "TRADITIONAL",
    28: "NO_AUTO_CREATE_USER",
    29: "HIGH_NOT_PRECEDENCE",
    30: "NO_ENGINE_SUBSTITUTION",
    31: "PAD_CHAR_TO_FULL_LENGTH",
}
"""Bits of the sql_mode status variable that mean the same in MySQL and MariaDB, or exist in MariaDB only."""

_MARIADB_MODES: Mapping[int, str] = {
    32: "EMPTY_STRING_IS_NULL",
    33: "SIMULTANEOUS_ASSIGNMENT",
    34: "TIME_ROUND_FRACTIONAL",
}
_MYSQL_MODES: Mapping[int, str] = {32: "TIME_TRUNCATE_FRACTIONAL"}
MODE_NAMES = frozenset({*_MODES.values(), *_MARIADB_MODES.values(), *_MYSQL_MODES.values()})
"""Every sql_mode that either server knows."""

STRICT_MODES = frozenset(
    {
        "NO_ZERO_IN_DATE",
        "NO_ZERO_DATE",
        "ERROR_FOR_DIVISION_BY_ZERO",
        "NO_AUTO_CREATE_USER",
        "STRICT_TRANS_TABLES",
        "STRICT_ALL_TABLES",
        "TRADITIONAL",
    }
)
"""Modes that are left out on the target: a statement that the source took must not fail there by a stricter check.

`Context.strict` names the statements that are strict all the same.
"""

ROUND, TRUNCATE = "TIME_ROUND_FRACTIONAL", "TIME_TRUNCATE_FRACTIONAL"
"""Modes of MariaDB and of MySQL. Without them MariaDB cuts digits of a second that do not fit, MySQL rounds them."""

_EXPLICIT_DEFAULTS = 1 << 24
_EXPLICIT_DEFAULTS_SINCE = {5: 17, 6: 9, 7: 5, 8: 4, 9: 2}
"""By second number of a MariaDB 10, its first version that logs explicit_defaults_for_timestamp; later ones all do."""

_SQL_IF_EXISTS = 1 << 28
_QUOTING_BY_NAME = frozenset({"ANSI", "POSTGRESQL", "ORACLE", "MSSQL", "DB2", "MAXDB"})


@dataclass(frozen=True, slots=True)
class Context:
    """The source's session in which one statement ran.

    Args:
        schema: the default schema; "" where there was none.
        sql_mode: the event's bit mask, or names with commas between them.
        timestamp: the value of NOW(): seconds since 1970, with the fraction where the event has one.
        time_zone: an offset or a name. "" where the event has none: no value of a row or of the statement depended on
            it there. SYSTEM only where it isn't known which zone that was upstream.
        collation_connection, collation_server: ids as in the event; 0 where it has none. The text itself is decoded.
        explicit_defaults_for_timestamp: None where neither the event nor the source tells it; the target's own setting
            counts then.
        sql_if_exists: MariaDB: IF EXISTS holds for tables and schemas although the text doesn't say so.
        mariadb: whether a MariaDB server wrote the event (only MariaDB runs `/*M! … */`).
        lower_case_names: whether the source folds names of schemas and tables (`lower_case_table_names` is 1); row
            events have folded names, statements have not.
        where: source and position, for errors.
        default_collations: ids of the session's default collations of character sets, where they differ from those that
            the server was built with.
        auto_increment: `auto_increment_increment` and `auto_increment_offset`.
        strict: the target refuses what it would cut. Set for statements of ours, which no source has run, and into TiDB
            for those that were strict on the source and that TiDB converts alike (`ddl.for_tidb`); between MySQL and
            MariaDB for each ALTER TABLE that was strict (`ddl.prepare`).
        inline_references: whether the server makes a foreign key of REFERENCES in a column's definition, or may do so.
        default_zone: the time zone of the source's sessions that set none. For a statement whose event has none because
            its table was empty, if it is run on a table with rows: a ghost's on the real table, a shard's on the merged
            one.
        by_tool: whether a tool of online DDL ran it on a copy that the tool itself filled (`ddl.online`).
    """

    schema: str = ""
    sql_mode: int | str = 0
    timestamp: float = 0.0
    time_zone: str = ""
    collation_connection: int = 0
    collation_server: int = 0
    explicit_defaults_for_timestamp: bool | None = None
    sql_if_exists: bool = False
    mariadb: bool = True
    lower_case_names: bool = False
    where: Where = field(default_factory=Where)
    default_collations: tuple[int, ...] = ()
    by_tool: bool = False
    auto_increment: tuple[int, int] = (1, 1)
    strict: bool = False
    inline_references: bool = True
    default_zone: str = ""

    @property
    def modes(self) -> tuple[str, ...]:
        """Names of the modes in sql_mode, in the order of their bits. Raises ValueError for a bit without a name."""
        if isinstance(self.sql_mode, str):
            return tuple(name.strip().upper() for name in self.sql_mode.split(",") if name.strip())
        known = {**_MODES, **(_MARIADB_MODES if self.mariadb else _MYSQL_MODES)}
        if not self.mariadb:
            known.pop(4)  # "not used" there
        return tuple(_name(known, bit) for bit in range(self.sql_mode.bit_length()) if self.sql_mode >> bit & 1)

    @property
    def target_modes(self) -> tuple[str, ...]:
        """Modes for a session that runs the statement again: those that decide its meaning; strict if it is `strict`.

        The mode for fractions of a second is left out: `ddl.fractions` gives that of the target's product. IGNORE_SPACE
        is kept where it was set and never added: with it, a column called `count` can't be before a bracket.
        """
        kept = [name for name in self.modes if name not in STRICT_MODES and name not in (ROUND, TRUNCATE)]
        return tuple(dict.fromkeys([*kept, "ALLOW_INVALID_DATES", *(["STRICT_ALL_TABLES"] if self.strict else [])]))

    @property
    def rounds_fractions(self) -> bool:
        """True if the session rounded digits of a second that did not fit into a column; false if it cut them."""
        return ROUND in self.modes if self.mariadb else TRUNCATE not in self.modes

    @property
    def ansi_quotes(self) -> bool:
        """True if double quotes delimit names in the statement."""
        return "ANSI_QUOTES" in self.modes or not _QUOTING_BY_NAME.isdisjoint(self.modes)

    @property
    def backslash_escapes(self) -> bool:
        """True if a backslash escapes in the statement's strings."""
        return "NO_BACKSLASH_ESCAPES" not in self.modes

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON form, which `from_dict` reads."""
        return {
            "schema": self.schema,
            "sql_mode": self.sql_mode,
            "timestamp": self.timestamp,
            "time_zone": self.time_zone,
            "collation_connection": self.collation_connection,
            "collation_server": self.collation_server,
            "explicit_defaults_for_timestamp": self.explicit_defaults_for_timestamp,
            "sql_if_exists": self.sql_if_exists,
            "mariadb": self.mariadb,
            "lower_case_names": self.lower_case_names,
            "where": self.where.to_dict(),
            "default_collations": self.default_collations,
            "by_tool": self.by_tool,
            "auto_increment": self.auto_increment,
            "strict": self.strict,
            "inline_references": self.inline_references,
            "default_zone": self.default_zone,
        }

    @classmethod
    def from_dict(cls, form: Mapping[str, Any]) -> Context:
        """Read the form of `to_dict`. Fields that earlier versions did not store get their defaults."""
        step, offset = form.get("auto_increment", (1, 1))
        return cls(
            form["schema"],
            form["sql_mode"],
            form["timestamp"],
            form["time_zone"],
            form["collation_connection"],
            form["collation_server"],
            form["explicit_defaults_for_timestamp"],
            form["sql_if_exists"],
            form["mariadb"],
            form["lower_case_names"],
            Where.from_dict(form["where"]),
            tuple(form.get("default_collations", ())),
            form.get("by_tool", False),
            (step, offset),
            form.get("strict", False),
            form.get("inline_references", True),
            form.get("default_zone", ""),
        )


def logs_explicit_defaults(version: tuple[int, int, int]) -> bool:
    """Return whether a MariaDB of that version logs explicit_defaults_for_timestamp with each statement."""
    major, minor, patch = version
    if (major, minor) >= (10, 10):
        return True
    return major == 10 and minor in _EXPLICIT_DEFAULTS_SINCE and patch >= _EXPLICIT_DEFAULTS_SINCE[minor]


def mariadb_flags(query: QueryEvent, *, logs_defaults: bool) -> dict[str, Any]:
    """Return the fields of `Context` that only MariaDB logs; two of them are bits of the status variable FLAGS2.

    `logs_defaults` tells whether an event without the bit of explicit_defaults_for_timestamp means that it was off.
    """
    explicit = bool(query.flags2 & _EXPLICIT_DEFAULTS)
    return {
        "explicit_defaults_for_timestamp": explicit if explicit or logs_defaults else None,
        "sql_if_exists": bool(query.flags2 & _SQL_IF_EXISTS),
        "default_collations": query.charset_collations or (),
    }


def mysql_flags(query: QueryEvent) -> dict[str, Any]:
    """Return the fields of `Context` that only MySQL logs."""
    return {
        "explicit_defaults_for_timestamp": query.explicit_defaults,
        "default_collations": () if query.utf8mb4_collation is None else (query.utf8mb4_collation,),
    }


def _name(known: Mapping[int, str], bit: int) -> str:
    if bit not in known:
        raise ValueError(f"bit {bit} of sql_mode is not known")
    return known[bit]
