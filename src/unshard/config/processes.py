"""The files of master and worker, and the log settings that both have."""

from __future__ import annotations

import socket
from pathlib import Path
from typing import Annotated, Literal

from pydantic import Field, field_validator, model_validator

from unshard.config.listener import ListenerConfig, check_advertised
from unshard.config.problems import used_without_effect
from unshard.config.section import NoEffect, Seconds, Section
from unshard.config.task import SparkConfig
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


_NO_ETCD = NoEffect("there is no etcd inside: masters meet in the database of `store`")


class MasterConfig(ListenerConfig, LogConfig):
    """One master: where it listens, and where it keeps its data.

    The keys are DM's; those of its etcd have no effect.
    """

    name: str = Field(
        default="", max_length=255, description="Name of this master; empty: `master-` and the host's name."
    )
    master_addr: str = Field(default="127.0.0.1:8261", description="HOST:PORT to listen at.")
    advertise_addr: str = Field(
        default="", description="HOST:PORT at which others reach it; empty: `master-addr`.", examples=["10.0.0.5:8261"]
    )
    data_dir: str = Field(default="", description="Folder of the default store; empty: `default.` and the name.")
    store: str = Field(
        default="",
        description="Ours: the database of what the master knows. Empty: SQLite in `data-dir`, for one master. Several "
        "masters share one: mysql://USER@HOST:PORT/DATABASE.",
        examples=["mysql://unshard@10.0.0.9:3306/unshard"],
    )
    store_password: str = Field(
        default="", repr=False, description="Ours: password of that account: plain, `env:NAME` or `file:PATH`."
    )
    leader_lease: Seconds = Field(
        default=4.0, ge=0.5, le=60, description="Ours: time after which another master leads when the leader is gone."
    )
    worker_ttl: Seconds = Field(
        default=8.0,
        ge=0.5,
        le=3600,
        description="Ours: time without a sign of life after which a worker's source moves. It stands for DM's "
        "`keepalive-ttl` of workers.",
    )
    rpc_timeout: Seconds = Field(default=30.0, gt=0, description="Time that another member may take to answer.")
    openapi: Annotated[bool, NoEffect("the API is always served")] = Field(default=True, description="Serve the API.")
    peer_urls: Annotated[str, _NO_ETCD] = Field(default="", description="Of etcd.")
    advertise_peer_urls: Annotated[str, _NO_ETCD] = Field(default="", description="Of etcd.")
    initial_cluster: Annotated[str, _NO_ETCD] = Field(default="", description="Of etcd.")
    initial_cluster_state: Annotated[str, _NO_ETCD] = Field(default="", description="Of etcd.")
    join: Annotated[str, _NO_ETCD] = Field(default="", description="Of etcd.")
    rpc_rate_limit: Annotated[float, NoEffect("nothing is held back")] = Field(default=10.0, description="Of DM.")
    rpc_rate_burst: Annotated[int, NoEffect("nothing is held back")] = Field(default=40, description="Of DM.")
    max_txn_ops: Annotated[int, _NO_ETCD] = Field(default=2048, description="Of etcd.")
    auto_compaction_mode: Annotated[str, _NO_ETCD] = Field(default="periodic", description="Of etcd.")
    auto_compaction_retention: Annotated[str, _NO_ETCD] = Field(default="1h", description="Of etcd.")
    quota_backend_bytes: Annotated[int, _NO_ETCD] = Field(default=2 << 30, description="Of etcd.")
    v1_sources_path: Annotated[str, NoEffect("DM 1.0 is not read")] = Field(default="", description="Of DM.")

    @property
    def called(self) -> str:
        """Name of the master: the configured one, or one by the host's name."""
        return self.name or f"master-{socket.gethostname()}"

    @property
    def folder(self) -> str:
        """Folder of the master's data: the configured one, or one by its name."""
        return self.data_dir or f"default.{self.called}"

    @model_validator(mode="after")
    def _reachable(self) -> MasterConfig:
        check_advertised(self.advertise_addr, self.master_addr, "master-addr")
        return self

    @property
    def notices(self) -> tuple[str, ...]:
        """Notices for the user about keys that have no effect; one sentence each."""
        return tuple(used_without_effect(self, ()))


_BY_MASTER = NoEffect("the masters' `worker-ttl` says how long a worker may be silent")


class WorkerConfig(ListenerConfig, LogConfig):
    """One worker: where it listens, and which masters it belongs to. The keys are DM's."""

    name: str = Field(default="", max_length=255, description="Name of this worker; empty: its `advertise-addr`.")
    worker_addr: str = Field(default="127.0.0.1:8262", description="HOST:PORT to listen at.")
    advertise_addr: str = Field(
        default="", description="HOST:PORT at which masters reach it; empty: `worker-addr`.", examples=["10.0.0.6:8262"]
    )
    join: str = Field(description="The masters, HOST:PORT with commas between them.", examples=["10.0.0.5:8261"])
    relay_dir: str = Field(
        default="", description="Folder of relay logs; it stands before `relay-dir` of a source. Empty: as there."
    )
    spark_log: str = Field(
        default="spark.log", min_length=1, description="Ours: file that Spark and its JVM write their lines to."
    )
    spark: SparkConfig | None = Field(
        default=None,
        description="Ours: the Spark session to start at once, written as the tasks write theirs, so that a spare "
        "takes a source over sooner. Not set: started by the first job of a task; a task that wants another one gets "
        "its own.",
    )
    wait_time_on_stop: Seconds = Field(
        default=10.0, ge=0, description="Ours: time that a pause or a stop gives the batch in hand to end."
    )
    keepalive_ttl: Annotated[Seconds, _BY_MASTER] = Field(default=60.0, description="Of etcd.")
    relay_keepalive_ttl: Annotated[Seconds, _BY_MASTER] = Field(default=1800.0, description="Of etcd.")

    @field_validator("join")
    @classmethod
    def _join(cls, text: str) -> str:
        for address in text.split(","):
            host, _, port = address.strip().removeprefix("http://").removeprefix("https://").rpartition(":")
            if not host or not port.isdecimal():
                raise ValueError("write HOST:PORT of each master, with commas between them")
        return text

    @property
    def masters(self) -> tuple[str, ...]:
        """HOST:PORT of each master."""
        return tuple(one.strip().removeprefix("http://").removeprefix("https://") for one in self.join.split(","))

    @model_validator(mode="after")
    def _reachable(self) -> WorkerConfig:
        check_advertised(self.advertise_addr, self.worker_addr, "worker-addr")
        return self

    @property
    def notices(self) -> tuple[str, ...]:
        """Notices for the user about keys that have no effect; one sentence each."""
        return tuple(used_without_effect(self, ()))
