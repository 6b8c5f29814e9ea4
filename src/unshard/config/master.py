"""The config file of a master."""

from __future__ import annotations

import socket
from typing import Annotated

from pydantic import Field, model_validator

from unshard.config.listener import ListenerConfig, check_advertised
from unshard.config.log import LogConfig
from unshard.config.problems import used_without_effect
from unshard.config.quantities import Seconds
from unshard.config.section import NoEffect

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
