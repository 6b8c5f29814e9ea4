"""Generated columns and keys whose values depend on the time zone of the session that writes a row.

A source's sessions write in its own zone, the sessions that write to a target in UTC. So `DATE(ts)` of a TIMESTAMP is
another day there, for about a third of all rows of a zone that is eight hours ahead. A server computes such a value
when it writes the row if the column is STORED or in a key; a VIRTUAL column in no key is computed by the session that
reads it, alike on both ends.

In a session of UTC, `CONVERT_TZ(ts, '+00:00', 'ZONE')` is the local time of that zone. A column of the target that has
this in place of `ts` has the source's values.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Sequence

from unshard.errors import DdlError
from unshard.model.table import Column, Table
from unshard.mysql.defaults import column_lines
from unshard.schema.lex import Token, TokenKind, tokens

_UTC = frozenset({"", "UTC", "ETC/UTC", "UCT", "GMT", "ETC/GMT", "ZULU", "+00:00", "-00:00", "+0:00", "-0:00"})
CLOCK = frozenset(
    {
        "NOW", "CURRENT_TIMESTAMP", "LOCALTIME", "LOCALTIMESTAMP", "CURDATE", "CURRENT_DATE", "CURTIME", "CURRENT_TIME",
        "SYSDATE",
    }
)  # fmt: skip
"""Words with which a statement asks for a local time."""
_KEY = re.compile(r"^ +(?:UNIQUE )?KEY `((?:[^`]|``)+)` (.*?),?$", re.MULTILINE)

# An expression is searched as a text of its own, with a blank between tokens: §t is a TIMESTAMP, §z a column that
# depends on the zone, §utc a constant that names UTC, §s any other constant.
_INDEPENDENT = re.compile(
    r"(?:unix_timestamp|isnull) \( §t \)|unix_timestamp \( \)|§t is (?:not )?null|§t (?:[<>=!] )+§t"
)
_CONVERTED = re.compile(
    r"convert_tz \( (?:§t|from_unixtime \( (?:[^()§]|\( [^()§]* \))* \)) , §utc , §(?:s|utc) \)"
    r"|unix_timestamp \( convert_tz \( [^()§]* , §s , §utc \) \)"
)
"""What a session of UTC computes as the local time of a zone, or from one."""
_DEPENDENT = re.compile(r"§[tz]|\b(?:from_unixtime|unix_timestamp) \(")
_TO_UTC = re.compile(r"convert_tz \( .* , §utc \)")
"""The whole expression of a generated TIMESTAMP that a session of UTC computes from a local time."""


def is_utc(zone: str) -> bool:
    """Return whether a time zone is UTC; true, too, for "", where none is known."""
    return zone.upper() in _UTC


def zone_faults(source: Table, target: Table, zone: Callable[[], str]) -> list[str]:
    """Return what of the target's table gets other values than the source's, whose sessions are in that zone.

    It is generated columns that are STORED or in a key, and keys over expressions, that both tables have. Those of the
    target that convert from UTC by CONVERT_TZ, while the source's do not, are right. Both tables need their
    `create_sql`. The zone is asked for only where one of the source's depends on it.
    """
    own = _written(source, converts=False)
    if not own or is_utc(name := zone()):
        return []
    converting = {what for what, (text, _) in own.items() if "convert_tz" in text.lower()}
    found = {what: one for what, one in _written(target, converts=False).items() if what in converting}
    found |= {what: one for what, one in _written(target, converts=True).items() if what in own}
    return [_fault(what, *one, name) for what, one in sorted(found.items())]


def condition_depends(condition: str, table: Table) -> bool:
    """Return whether the rows of a table for which a condition is true depend on the session's time zone.

    One that names CONVERT_TZ is taken to be written for a session of UTC.
    """
    found = _tokens(condition)
    words = {token.word for token in found}
    if "CONVERT_TZ" in words:
        return False
    stamps = {column.name.lower() for column in table.columns if column.type == "timestamp"}
    return bool(words & CLOCK) or _depends(found, None, stamps, (), converts=False)


def _fault(what: str, text: str, stamps: Sequence[str], zone: str) -> str:
    shown = "ZONE" if zone.upper() == "SYSTEM" else zone
    if stamps:
        name = stamps[0].replace("`", "``")
        how = f"CONVERT_TZ(`{name}`, '+00:00', '{shown}') in place of `{name}`"
    elif "from_unixtime" in text.lower():
        how = f"CONVERT_TZ(FROM_UNIXTIME(…), '+00:00', '{shown}') in place of FROM_UNIXTIME(…)"
    else:
        how = f"CONVERT_TZ(…, '{shown}', '+00:00') around each local time"
    return (
        f"{what}, {text}, depends on the session's time zone, which is {zone} on the source, while rows are written to"
        f" the target in UTC: give it {how} there, in a session with time_zone = '+00:00'"
    )


def _written(table: Table, *, converts: bool) -> dict[str, tuple[str, tuple[str, ...]]]:
    """Return the columns and keys that depend on the zone when a row is written, by their names in words.

    Each with the text of its expression and the TIMESTAMP columns in it. `converts`: CONVERT_TZ from UTC makes an
    expression independent.
    """
    lines = column_lines(table.create_sql)
    stamps = {column.name.lower() for column in table.columns if column.type == "timestamp"}
    found = {
        column: read
        for column in table.columns
        if column.generated and column.name in lines and (read := _generated(lines[column.name])) is not None
    }
    zoned: set[str] = set()
    while True:  # a generated column may read others
        more = {
            column.name.lower()
            for column, (text, _, _) in found.items()
            if column.name.lower() not in zoned and _depends(text, column, stamps, zoned, converts)
        }
        if not more:
            break
        zoned |= more
    keyed = {(name or "").lower() for index in table.indexes for name in index.columns}
    written: dict[str, tuple[str, tuple[str, ...]]] = {}
    for column, (text, shown, stored) in found.items():
        if column.name.lower() in zoned and (stored or column.name.lower() in keyed):
            written[f"the generated column {column.name}"] = shown, _named(text, stamps)
    for name, rest in _KEY.findall(table.create_sql):
        for text, shown in _key_expressions(rest):
            if _depends(text, None, stamps, zoned, converts):
                written[f"the key {name.replace('``', '`')}"] = shown, _named(text, stamps)
    return written


def _depends(
    text: Sequence[Token], column: Column | None, stamps: Collection[str], zoned: Collection[str], converts: bool
) -> bool:
    own = " ".join(_words(text, stamps, zoned))
    while own.startswith("( ") and own.endswith(" )") and own.count("(") == 1:
        own = own[2:-2]
    if column is not None and column.type == "timestamp":
        return own != "§t" and not (converts and _TO_UTC.fullmatch(own))
    own = _INDEPENDENT.sub("", _CONVERTED.sub("", own) if converts else own)
    return _DEPENDENT.search(own) is not None


def _words(found: Sequence[Token], stamps: Collection[str], zoned: Collection[str]) -> list[str]:
    words = []
    for number, token in enumerate(found):
        after = found[number + 1] if number + 1 < len(found) else None
        if token.kind is TokenKind.STRING:
            words.append("§utc" if is_utc(token.value[1:-1] or "-") else "§s")
        elif token.kind is TokenKind.SYMBOL:
            words.append(token.value)
        elif after is not None and after.kind is TokenKind.STRING and token.word.startswith("_"):
            continue  # the character set of a constant
        elif after is not None and after.is_symbol("(") and token.kind is TokenKind.WORD:
            words.append(token.value.lower())
        elif token.value.lower() in zoned:
            words.append("§z")
        elif token.value.lower() in stamps:
            words.append("§t")
        else:
            words.append(token.value.lower() if token.kind is TokenKind.WORD else "name")
    return words


def _named(found: Sequence[Token], stamps: Collection[str]) -> tuple[str, ...]:
    names = (token.value for token in found if token.kind in (TokenKind.NAME, TokenKind.WORD))
    return tuple(name for name in dict.fromkeys(names) if name.lower() in stamps)


def _generated(line: str) -> tuple[Sequence[Token], str, bool] | None:
    """Return the expression of a generated column, as tokens and as a text, and whether the column is stored."""
    found = _tokens(line)
    begin = next((n for n in range(1, len(found)) if found[n - 1].word == "AS" and found[n].is_symbol("(")), None)
    if begin is None:
        return None
    end = _closing(found, begin)
    stored = any(token.word in ("STORED", "PERSISTENT") for token in found[end:])
    return found[begin + 1 : end], line[found[begin].end : found[end].start], stored


def _key_expressions(line: str) -> list[tuple[Sequence[Token], str]]:
    """Return the expressions of a key, which have brackets of their own."""
    found = _tokens(line)
    expressions = []
    place = 1
    while place < len(found):
        if found[place].is_symbol("(") and (found[place - 1].is_symbol("(") or found[place - 1].is_symbol(",")):
            end = _closing(found, place)
            expressions.append((found[place + 1 : end], line[found[place].end : found[end].start]))
            place = end
        place += 1
    return expressions


def _closing(found: Sequence[Token], begin: int) -> int:
    depth = 0
    for place in range(begin, len(found)):
        depth += found[place].is_symbol("(") - found[place].is_symbol(")")
        if not depth:
            return place
    return len(found) - 1


def _tokens(line: str) -> Sequence[Token]:
    try:
        return tokens(line)
    except DdlError:  # a form that no supported server writes
        return ()
