"""The config file of a worker."""

from __future__ import annotations

from typing import Annotated

from pydantic import Field, field_validator, model_validator

from unshard.config.listener import ListenerConfig, check_advertised
from unshard.config.log import LogConfig
from unshard.config.problems import used_without_effect
from unshard.config.quantities import Seconds
from unshard.config.section import NoEffect
from unshard.config.task import SparkConfig

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
