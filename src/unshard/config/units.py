"""The settings of a task's units: dump (`mydumpers`), load (`loaders`), sync (`syncers`), `validators`."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar, Literal

from pydantic import BeforeValidator, Field, field_validator, model_validator

from unshard.config.dump_flags import DumpFlags, UnsupportedFlag, parse_flags, parse_size
from unshard.config.quantities import Seconds, Unit, seconds_of, size_of
from unshard.config.section import NoEffect, Section, later, not_supported

OnMissingRow = Literal["warn", "stop"]
"""What happens on an UPDATE or DELETE that finds no row in the target: it is counted and logged, or the task stops."""

DEFAULT_WORKER_COUNT = 4
"""Partitions that apply row changes in parallel."""

DEFAULT_BATCH = 2000
"""Rows of one transaction on the target."""

DEFAULT_ROWS = 50_000
"""Rows of one chunk of a dump if neither `rows` nor `-r` is set."""

_GIVEN_TWICE = {
    "threads": "threads",
    "rows": "rows",
    "where": "where",
    "statement_size": "statement_bytes",
    "chunk_filesize": "chunk_bytes",
}

OnDuplicate = Literal["error", "replace", "ignore"]
DumpFormat = Literal["parquet", "sql"]
_BY_INSERT = NoEffect(
    "rows are loaded by INSERT statements, a chunk and its receipt in one transaction; the rows are the same"
)
_NO_ANALYZE = NoEffect("TiDB collects statistics by itself; run ANALYZE TABLE to have them at once")
_UNUSED_FLAG = NoEffect("DM takes it for its own history's sake and does nothing with it")


class DumperConfig(Section):
    """The dump: how the source's tables are read."""

    mydumper_path: Annotated[str, NoEffect("no other program dumps")] = Field(
        default="./bin/mydumper", description="Path of mydumper."
    )
    threads: int = Field(default=4, ge=1, description="Connections to the source that read side by side.")
    chunk_filesize: str = Field(
        default="64",
        description="Size that a data file is cut at: MiB as a bare number, or with a unit, such as `256MiB`.",
        examples=["64", "256MiB"],
    )
    statement_size: Annotated[int, Unit("bytes")] = Field(
        default=0, ge=0, description="Length of one INSERT in a `sql` file; 0: 1000000."
    )
    rows: Annotated[int, Unit("rows")] = Field(
        default=0, ge=0, description=f"Rows of one chunk of a table; 0: {DEFAULT_ROWS}."
    )
    where: str = Field(
        default="", description="Condition that dumped rows meet, in UTC. The sync that follows does not know it."
    )
    skip_tz_utc: Annotated[bool, NoEffect("sessions are always in UTC")] = Field(
        default=True, description="Leave the dump's session in the server's time zone."
    )
    extra_args: str = Field(
        default="",
        description="Flags of mydumper and dumpling: `-B/--database`, `-T/--tables-list`, `-F/--filesize`, "
        "`-f/--filter`, `-r/--rows`, `-s/--statement-size`, `-t/--threads`, `--where`, `--consistency "
        "auto|none|flush|lock`, `--no-locks`, `-W/--no-views`. `-B`, `-T` and `-f` stand in for the block-allow list "
        "in the dump, and in the dump only. With `task-mode: load`, `--escape-backslash=false` says that dumpling was "
        "called so (LOAD-029). Another flag is refused with the reason.",
        examples=["-B shop -T order_1,order_2", "--filter 'shop.*,!shop.tmp_*'", "--consistency none"],
    )
    format: DumpFormat = Field(
        default="parquet", description="Kind of data files: typed and small, or SQL as mydumper's."
    )

    @field_validator("chunk_filesize")
    @classmethod
    def _size(cls, text: str) -> str:
        parse_size(text)
        return text

    @field_validator("extra_args")
    @classmethod
    def _flags(cls, text: str) -> str:
        try:
            parse_flags(text)
        except UnsupportedFlag as error:
            raise not_supported(str(error)) from None
        return text

    @model_validator(mode="after")
    def _once(self) -> DumperConfig:
        flags = self.flags
        for key, flag in _GIVEN_TWICE.items():
            if key in self.model_fields_set and getattr(flags, flag) is not None:
                raise ValueError(f"{key.replace('_', '-')} is set, and in extra-args too; keep one")
        return self

    @property
    def flags(self) -> DumpFlags:
        """The settings in `extra-args`."""
        return parse_flags(self.extra_args)


def _import_mode(value: Any) -> Any:
    return "logical" if value in ("sql", "loader") else value


class LoaderConfig(Section):
    """The load: how dump files become rows of the target."""

    old_names: ClassVar[dict[str, str]] = {"on-duplicate": "on-duplicate-logical"}

    pool_size: int = Field(default=16, ge=1, description="Chunks that are loaded side by side.")
    dir: str = Field(
        default="./dumped_data",
        min_length=1,
        description="Folder of the dump files; `.TASK/SOURCE-ID` is added, so that tasks and sources keep apart. "
        "Mode `load` takes it as it stands.",
    )
    sorting_dir_physical: Annotated[str, _BY_INSERT] = Field(default="", description="Folder for the local sort.")
    import_mode: Annotated[Literal["logical", "physical", "import-into"], BeforeValidator(_import_mode), _BY_INSERT] = (
        Field(
            default="logical",
            description="`logical`: INSERT statements (DM's old names `sql` and `loader` mean it too); the "
            "others are loaded in the same way.",
        )
    )
    on_duplicate_logical: OnDuplicate = Field(
        default="error",
        description="What a row does whose key the target has already: stop the task, take the old row's place, or "
        "be left out. DM's default is `replace`; `docs/adr/0002-duplicates-stop-a-load.md` says why ours is not.",
    )
    incremental_import: bool = Field(
        default=False,
        description="Whether the copy may load into tables that hold rows already, beside them. TiDB Lightning's name. "
        "Without it such a table stops the copy before its first row.",
    )
    on_duplicate_physical: Annotated[Literal["none", "manual"], later("none")] = Field(
        default="none", description="Duplicates of a physical import."
    )
    checksum_physical: Annotated[Literal["required", "optional", "off"], _BY_INSERT] = Field(
        default="required", description="Checksum after a physical import."
    )
    analyze: Annotated[Literal["required", "optional", "off"], _NO_ANALYZE] = Field(
        default="optional", description="ANALYZE TABLE after the import."
    )
    disk_quota_physical: Annotated[int, _BY_INSERT, Unit("bytes")] = Field(
        default=0, description="Disk that a physical import may take; 0: no limit."
    )
    range_concurrency: Annotated[int, _BY_INSERT] = Field(
        default=0, description="Ranges that a physical import writes at once."
    )
    compress_kv_pairs: Annotated[str, _BY_INSERT] = Field(default="", description="Compression of a physical import.")
    pd_addr: Annotated[str, _BY_INSERT] = Field(default="", description="Address of the cluster's placement driver.")

    @field_validator("dir")
    @classmethod
    def _local(cls, text: str) -> str:
        if "://" in text:
            raise not_supported("shared storage; write a folder that all Spark workers see")
        return text


class SyncerConfig(Section):
    """The sync: how row changes of the binlog reach the target."""

    meta_file: Annotated[str, NoEffect("checkpoints are kept on the target")] = Field(
        default="", description="Old file."
    )
    worker_count: int = Field(
        default=DEFAULT_WORKER_COUNT,
        ge=1,
        description="Partitions, hence connections, that apply changes side by side.",
    )
    batch: Annotated[int, Unit("rows")] = Field(
        default=DEFAULT_BATCH, ge=1, description="Most rows of one transaction on the target."
    )
    queue_size: Annotated[int, NoEffect("a batch is bounded by its bytes, not by a queue")] = Field(
        default=1024, ge=0, description="Length of DM's queues between its steps."
    )
    checkpoint_flush_interval: Annotated[int, Unit("s")] = Field(
        default=30, ge=1, description="Longest time between two checkpoints while changes come in."
    )
    compact: bool = Field(default=True, description="Of several changes of a row in a batch, apply their outcome only.")
    multiple_rows: bool = Field(default=True, description="Put many rows into one statement.")
    on_missing_row: OnMissingRow = Field(
        default="warn",
        description="What becomes of an UPDATE or DELETE that finds no row in the target: it is counted and logged, "
        "or the task stops before anything is written with it.",
    )
    safe_mode: bool = Field(
        default=False, description="Write INSERT as REPLACE and UPDATE as DELETE and REPLACE throughout."
    )
    safe_mode_duration: str = Field(
        default="",
        description="Time of safe mode after each start with `delivery: at-least-once`, such as `60s`; not set: two "
        "checkpoint intervals. `0s`: never, also not where changes may be applied again; the task stops there.",
        examples=["60s"],
    )
    enable_gtid: Annotated[bool, NoEffect("the source file's enable-gtid counts")] = Field(
        default=False, description="Read by GTID."
    )
    max_retry: Annotated[int, _UNUSED_FLAG] = Field(default=0, description="Tries of a statement.")
    auto_fix_gtid: Annotated[bool, _UNUSED_FLAG] = Field(default=False, description="Mend GTID sets.")
    disable_detect: Annotated[bool, _UNUSED_FLAG] = Field(default=False, description="Turn conflict detection off.")
    enable_ansi_quotes: Annotated[bool, _UNUSED_FLAG] = Field(
        default=False, description='Statements quote names with ".'
    )

    @field_validator("safe_mode_duration")
    @classmethod
    def _duration(cls, text: str) -> str:
        seconds_of(text or "0s")
        return text

    @model_validator(mode="after")
    def _lasting(self) -> SyncerConfig:
        if self.safe_mode and not self.safe_mode_seconds:
            raise ValueError("safe-mode: true needs a safe-mode-duration over 0s, or none (DM's error 20061)")
        return self

    @property
    def safe_mode_seconds(self) -> float:
        """The value of `safe-mode-duration`, or its default, in seconds."""
        given: float = seconds_of(self.safe_mode_duration) if self.safe_mode_duration else 0.0
        return given if self.safe_mode_duration else 2.0 * self.checkpoint_flush_interval


_BY_PLACE = NoEffect(
    "a row is judged once the target has all that the source held when the row was read, which takes some seconds"
)
_AT_ONCE = NoEffect("what the validator finds is in the target at once")


class ValidatorConfig(Section):
    """Continuous validation: rows that change are compared on both ends while the task runs."""

    mode: Literal["none", "fast", "full"] = Field(
        default="none",
        description="`full`: each column is compared; `fast`: only whether the row is there; `none`: nothing.",
    )
    worker_count: int = Field(
        default=4, ge=1, description="Tasks that compare side by side, and half of Spark's slots at most."
    )
    validate_interval: Seconds = Field(default=10.0, gt=0, description="Time between two looks at a row that differs.")
    check_interval: Seconds = Field(default=5.0, gt=0, description="Time between two looks for rows that have changed.")
    row_error_delay: Annotated[Seconds, _BY_PLACE] = Field(default=1800.0, description="Time until a row is an error.")
    meta_flush_interval: Annotated[Seconds, _AT_ONCE] = Field(default=300.0, description="Time between checkpoints.")
    batch_query_size: Annotated[int, Unit("rows")] = Field(default=100, ge=1, description="Rows of one SELECT.")
    max_pending_row_size: str = Field(
        default="500m",
        description="Bytes of keys that wait to be compared, as they are kept in the target; with more the validator"
        " stops.",
        examples=["500m"],
    )
    max_pending_row_count: Annotated[int, Unit("rows")] = Field(
        default=2147483647, ge=1, description="Rows that wait to be compared; with more the validator stops."
    )

    full_load_rows_per_second: Annotated[int, Unit("rows")] = Field(
        default=50_000,
        ge=0,
        description="How fast the rows of the full load are compared, in a task of mode `all`; 0: they are not compared"
        " before they change.",
    )

    @field_validator("max_pending_row_size")
    @classmethod
    def _size(cls, text: str) -> str:
        size_of(text)
        return text
