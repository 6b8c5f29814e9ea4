"""The log settings of a process, in the files of master and worker."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, field_validator

from unshard.config.section import NoEffect, Section
from unshard.log import LogSettings


class LogConfig(Section):
    """The log of one process."""

    log_level: Literal["debug", "info", "warn", "error"] = Field(
        default="info", description="Least weight of a line; `unshard ctl log-level` changes it at run time."
    )
    log_file: str = Field(default="", description="File of the log; empty: stderr.")
    log_format: Literal["text", "json"] = Field(default="text", description="Form of a line.")
    redact_info_log: bool = Field(default=False, description="Write ? in the log in place of values of rows.")
    log_rotate: Annotated[str, NoEffect("the log is parted by size")] = Field(default="", description="Of DM.")

    @field_validator("log_level", mode="before")
    @classmethod
    def _level(cls, level: object) -> object:
        return {"warning": "warn", "fatal": "error"}.get(level, level) if isinstance(level, str) else level

    @property
    def log_settings(self) -> LogSettings:
        """The same settings in the form for `log.configure`."""
        file = Path(self.log_file) if self.log_file else None
        return LogSettings(file, self.log_level, self.log_format, self.redact_info_log)
