"""Brings the default of a TIMESTAMP from a session's time zone to UTC, in which every structure is kept.

A server stores such a default as a moment, and SHOW CREATE TABLE in a session of UTC shows it so.
"""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta, timezone, tzinfo
from zoneinfo import ZoneInfo

from unshard.schema.definition import Default, DefaultKind
from unshard.schema.words import unquoted

_OFFSET = re.compile(r"([+-])(\d{1,2}):(\d\d)")
_DATE = r"(?P<Y>\d{4})-(?P<m>\d{1,2})-(?P<d>\d{1,2})"
_TIME = r"(?P<H>\d{1,2}):(?P<M>\d{1,2})(?::(?P<S>\d{1,2})(?:\.(?P<f>\d{0,6}))?)?"
_SPACED = re.compile(rf"{_DATE}(?:[ T]{_TIME})?")
_DIGITS = re.compile(r"(?P<Y>\d{4})(?P<m>\d\d)(?P<d>\d\d)(?:(?P<H>\d\d)(?P<M>\d\d)(?P<S>\d\d)(?:\.(?P<f>\d{0,6}))?)?")
_ZERO = re.compile(r"[0:. T-]*")


def in_utc(literal: str, zone: str, digits: int) -> Default:
    """Return the default that a TIMESTAMP with so many digits of a second gets from a constant in that time zone.

    It has the form of SHOW CREATE TABLE. A constant that can't be read here, in a zone that is not known here, or at an
    hour that the clocks of the zone skip or have twice becomes the expression that the server would compute; in UTC it
    stays as it is.
    """
    text = _plain(literal)
    of_zone = _zone(zone)
    if _ZERO.fullmatch(text):
        return Default(DefaultKind.CONSTANT, f"'0000-00-00 00:00:00{'.' * bool(digits)}{'0' * digits}'")
    found = _moment(text, of_zone, digits) if of_zone is not None else None
    if found is None and of_zone is UTC:
        return Default(DefaultKind.CONSTANT, literal)
    if found is None:
        return Default(DefaultKind.EXPRESSION, f"convert_tz({literal},'{zone}','+00:00')")
    second = f".{found.microsecond:06}"[: digits + 1] if digits else ""
    return Default(DefaultKind.CONSTANT, f"'{found:%Y-%m-%d %H:%M:%S}{second}'")


def _plain(literal: str) -> str:
    """Return the characters of a constant: `'x'`, `"x"`, `TIMESTAMP'x'`, a number."""
    quote = next((place for place, sign in enumerate(literal) if sign in "'\""), None)
    return literal.strip() if quote is None else unquoted(literal[quote:]).strip()


def _zone(name: str) -> tzinfo | None:
    """Return the time zone; UTC itself for one without any offset, None where it is not known here."""
    offset = _OFFSET.fullmatch(name)
    if offset is not None:
        apart = timedelta(hours=int(offset[2]), minutes=int(offset[3]))
        return timezone(-apart if offset[1] == "-" else apart) if apart else UTC
    if name.upper() == "UTC":
        return UTC
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, LookupError):
        return None


def _moment(text: str, zone: tzinfo, digits: int) -> datetime | None:
    found = _SPACED.fullmatch(text) or _DIGITS.fullmatch(text)
    if found is None:
        return None
    parts = {name: int(value) for name, value in found.groupdict().items() if value and name != "f"}
    fraction = (found["f"] or "").rstrip("0")
    if len(fraction) > digits:  # the server rounds it
        return None
    try:
        first = datetime(
            parts["Y"], parts["m"], parts["d"], parts.get("H", 0), parts.get("M", 0), parts.get("S", 0),
            int(fraction.ljust(6, "0")), zone,
        )  # fmt: skip
        return first.astimezone(UTC) if first.utcoffset() == first.replace(fold=1).utcoffset() else None
    except (ValueError, OverflowError):
        return None
