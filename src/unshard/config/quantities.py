"""Durations and sizes with their units, as files have them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any

from pydantic import BeforeValidator, GetCoreSchemaHandler, PlainSerializer
from pydantic_core import CoreSchema, core_schema

_DURATION = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h)")
_SIZE = re.compile(r"(\d+)\s*(?:([kmgt])(?:i?b)?|b)", re.IGNORECASE)
_SHIFT = {"": 0, "k": 10, "m": 20, "g": 30, "t": 40}
_WHOLE = {"s": 1, "h": 3600, "bytes": 1, "GB": 1 << 30}
"""The size of one unit, in seconds or bytes."""
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0}


@dataclass(frozen=True)
class Unit:
    """The unit of a key's value, for the reference page.

    A value in whole `s`, `h`, `bytes` or `GB` may be written with another unit, such as 5m or 64MiB, if it is a whole
    number of the key's unit.
    """

    name: str

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        schema = handler(source)
        if self.name not in _WHOLE:
            return schema
        return core_schema.no_info_before_validator_function(self._number, schema)

    def _number(self, value: Any) -> Any:
        if not isinstance(value, str) or not value[-1:].isalpha() or not value[:1].isdigit():
            return value
        of_time = self.name in ("s", "h")
        amount = seconds_of(value) if of_time else size_of(value)
        whole, rest = divmod(amount, _WHOLE[self.name])
        if rest:
            raise ValueError(f"write a whole number of {self.name}")
        return int(whole)


def seconds_of(value: Any) -> Any:
    """Return the seconds of a duration such as `90s`, `5m`, `1h30m`, `500ms`.

    Raises ValueError on a text without units.
    """
    if not isinstance(value, str):
        return value
    parts = _DURATION.findall(value)
    if "".join(number + unit for number, unit in parts) != value or not parts:
        raise ValueError("write a duration with its unit, such as 30s, 5m or 1h30m")
    return sum(float(number) * _SECONDS[unit] for number, unit in parts)


def size_of(text: str) -> int:
    """Return the bytes of a size with its unit, such as `64MiB` or `1g`; all units are binary. Raises ValueError."""
    match = _SIZE.fullmatch(text.strip())
    if match is None:
        raise ValueError("write a size with its unit, such as 512KiB, 64MiB or 1GiB")
    return int(match[1]) << _SHIFT[(match[2] or "").lower()]


def _with_unit(seconds: float) -> str:
    """Return a duration as a file has it, so that a model that is dumped as JSON can be read as a file again."""
    return f"{Decimal(repr(seconds)):f}s"


Seconds = Annotated[
    float,
    BeforeValidator(seconds_of),
    PlainSerializer(_with_unit, when_used="json"),
    Unit("duration, such as 5m"),
]
