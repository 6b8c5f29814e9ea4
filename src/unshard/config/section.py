"""The base class of all config sections, a frozen model with DM's key names, and the markers that its keys can have.

A marker says that a key is not supported yet, or that it is accepted and has no effect.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from pydantic import BaseModel, ConfigDict, GetCoreSchemaHandler
from pydantic_core import CoreSchema, PydanticCustomError, core_schema

NOT_SUPPORTED = "not_supported_yet"


class Section(BaseModel):
    """One mapping of a task or source file.

    Field names are DM's keys with `_` for `-`. `old_names` maps a key that DM still accepts to its present name.
    """

    model_config = ConfigDict(
        frozen=True,
        extra="forbid",
        alias_generator=lambda name: name.replace("_", "-"),
        validate_by_name=True,
        validate_by_alias=True,
        hide_input_in_errors=True,
    )
    old_names: ClassVar[dict[str, str]] = {}


@dataclass(frozen=True)
class Later:
    """A marker for a key of DM that is not supported yet: only `neutral` values, which ask for nothing, are valid."""

    neutral: tuple[Any, ...]

    def __get_pydantic_core_schema__(self, source: Any, handler: GetCoreSchemaHandler) -> CoreSchema:
        return core_schema.no_info_after_validator_function(self._refuse, handler(source))

    def _refuse(self, value: Any) -> Any:
        if value not in self.neutral:
            shown = " or ".join(written(value) for value in self.neutral)
            raise not_supported(f"leave it out or write {shown}")
        return value


@dataclass(frozen=True)
class NoEffect:
    """A marker for a key that is accepted and has no effect, as in DM or by our design.

    Using the key gives a notice with `why`.
    """

    why: str


def not_supported(advice: str, below: tuple[str, ...] = ()) -> PydanticCustomError:
    """Return the error that a validator raises for a value that a later version will support.

    The report names the validator's key, followed by `below`.
    """
    return PydanticCustomError(NOT_SUPPORTED, "{advice}", {"advice": advice, "below": below})


def later(*neutral: Any) -> Later:
    """Return the mark of a key of DM that is not supported yet: only its `neutral` values are accepted."""
    return Later(neutral)


def written(value: Any) -> str:
    """Return a value as it is written in YAML: true, "", [], {}."""
    if value is None:
        return "nothing"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, tuple):
        return "[" + ", ".join(written(item) for item in value) + "]"
    if isinstance(value, str):
        return f'"{value}"'
    return str(value)
