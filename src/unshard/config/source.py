"""The source file: one source server."""

from __future__ import annotations

import re
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BeforeValidator, Field, field_validator

from unshard.config.database import DatabaseConfig
from unshard.config.problems import used_without_effect
from unshard.config.quantities import Seconds, Unit
from unshard.config.rules import FilterRule
from unshard.config.section import NoEffect, Section

SOURCE_ID_BYTES = 32
_BINLOG_NAME = re.compile(r"[^/\\]+\.\d+\Z")
_GTIDS = re.compile(
    r"\s*(?:\d+-\d+-\d+(?:\s*,\s*\d+-\d+-\d+)*"
    r"|[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?::[\w-]+)+"
    r"(?:\s*,\s*[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}(?::[\w-]+)+)*)\s*\Z",
    re.IGNORECASE,
)
_OLD = NoEffect("DM no longer uses it")


def _source_id(text: str) -> str:
    size = len(text.encode())
    if not 0 < size <= SOURCE_ID_BYTES:
        raise ValueError(f"write 1 to {SOURCE_ID_BYTES} bytes, this has {size}")
    if text in (".", "..") or set(text) & set("/\\\0"):
        raise ValueError("it names a folder; write it without slashes, and not `.` or `..`")
    return text


def _binlog_name(text: str) -> str:
    if text and not _BINLOG_NAME.match(text):
        raise ValueError("write the name of a binlog file: mysql-bin.000001")
    return text


def _gtid(text: str) -> str:
    if text and not _GTIDS.match(text):
        raise ValueError("write a GTID set: 0-1-100 (MariaDB) or 3e11fa47-71ca-11e1-9e33-c80aa9429562:1-100 (MySQL)")
    return text


def _zero_is_unset(value: Any) -> Any:
    return None if value in ("0", 0) else value


SourceId = Annotated[str, AfterValidator(_source_id)]
BinlogName = Annotated[str, AfterValidator(_binlog_name)]
GtidText = Annotated[str, AfterValidator(_gtid)]


class PurgeConfig(Section):
    """The limits by which files of the relay log are deleted. A file that a task still needs is never deleted."""

    interval: Annotated[int, Unit("s")] = Field(default=3600, ge=0, description="Time between two looks; 0: never.")
    expires: Annotated[int, Unit("h")] = Field(
        default=0, ge=0, description="Age from which a file goes; 0: age never counts."
    )
    remain_space: Annotated[int, Unit("GB")] = Field(
        default=15, ge=0, description="Free disk below which files go, only as many as it takes; 0: never."
    )


class CheckerConfig(Section):
    """Automatic resume of a task that an error has paused, and of the relay. `unshard run` has it too."""

    check_enable: bool = Field(default=True, description="Resume without being asked.")
    backoff_rollback: Seconds = Field(
        default=300.0, gt=0, description="Time without an error after which waits get shorter."
    )
    backoff_max: Seconds = Field(default=300.0, gt=0, description="Longest wait before a resume.")
    check_interval: Annotated[Seconds, NoEffect("a task is resumed when its wait is over")] = Field(
        default=5.0, gt=0, description="Time between looks."
    )
    backoff_min: Seconds = Field(default=1.0, gt=0, description="Shortest wait.")
    backoff_jitter: bool = Field(default=True, description="Waits vary at random, by up to half.")
    backoff_factor: float = Field(default=2.0, ge=1, description="Growth of waits.")
    max_resumes: int = Field(
        default=0,
        ge=0,
        description="Ours: resumes to give up after, less those rolled back; 0: it never gives up.",
    )


class SourceConfig(Section):
    """One source server: how to connect to it, where to begin, and how much of its relay log is kept."""

    source_id: SourceId = Field(description="Name of the source in tasks and checkpoints.", examples=["shop-01"])
    enable: bool = Field(
        default=True, description="Whether tasks may run on the source; a task with a disabled one stops."
    )
    database: DatabaseConfig = Field(alias="from", description="How to reach the server.")
    enable_gtid: bool = Field(default=False, description="Start and resume by GTID rather than by file and position.")
    enable_relay: Annotated[bool, NoEffect("the relay log is always written")] = Field(
        default=False, description="Keep a relay log."
    )
    relay_binlog_name: BinlogName = Field(default="", description="Binlog file that the relay log begins with.")
    relay_binlog_gtid: GtidText = Field(default="", description="GTID set after which the relay log begins.")
    relay_dir: str = Field(default="relay-dir", min_length=1, description="Folder of the relay log.")
    flavor: Literal["", "mysql", "mariadb"] = Field(default="", description="Kind of server; empty: it is asked.")
    server_id: Annotated[int | None, BeforeValidator(_zero_is_unset)] = Field(
        default=None, ge=1, le=4294967295, description="Replica id towards the source; not set or 0: drawn at random."
    )
    purge: PurgeConfig = Field(default_factory=PurgeConfig, description="When relay files are deleted.")
    checker: CheckerConfig = Field(default_factory=CheckerConfig, description="Automatic resume.")
    case_sensitive: bool = Field(
        default=False, description="Names differ by case on the source; it counts for every task of the source."
    )
    filters: tuple[FilterRule, ...] = Field(
        default=(),
        description="Event filters for all tasks of the source. One with the patterns of a task's filter does not "
        "count in that task.",
    )
    auto_fix_gtid: Annotated[bool, _OLD] = Field(default=False, description="Mend GTID sets.")
    meta_dir: Annotated[str, _OLD] = Field(default="", description="Folder of old metadata.")
    charset: Annotated[str, NoEffect("sessions talk utf8mb4")] = Field(
        default="", description="Character set of connections."
    )
    tracer: Annotated[Any, _OLD] = Field(default=None, description="Settings of a tracer.")

    @field_validator("flavor", mode="before")
    @classmethod
    def _flavor(cls, value: Any) -> Any:
        return value.lower() if isinstance(value, str) else value

    @property
    def notices(self) -> tuple[str, ...]:
        """Notices for the user about keys that have no effect; one sentence each."""
        return tuple(used_without_effect(self, ()))
