"""`unshard master`: one master until a signal stops it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from threading import Event
from typing import Any

from rich.console import Console

from unshard.cli.process import stopped_by_signal
from unshard.config.encryption import use_key
from unshard.config.files import load_process
from unshard.config.master import MasterConfig
from unshard.config.redact import hidden
from unshard.config.secret import read_secret
from unshard.errors import ConfigError, Where
from unshard.log import configure
from unshard.master.service import Master
from unshard.master.store import Store
from unshard.web.audit import AuditLog
from unshard.web.links import WorkerLinks
from unshard.web.master_app import master_app
from unshard.web.server import WebServer

LOOK_SECONDS = 0.5


def run_master(file: Path | None, given: Mapping[str, Any], console: Console) -> None:
    """Serve until SIGINT or SIGTERM. Raises ConfigError, and ClusterError where it can't begin."""
    config = load_process(MasterConfig, file or "", given)
    for notice in config.notices:
        console.print(f"note: {notice}", markup=False, highlight=False, soft_wrap=True)
    configure(config.log_settings)
    use_key(config.secret_key_path)
    links = WorkerLinks(config, "https" if config.ssl_cert else "http", config.rpc_timeout)
    master = Master(
        Store(_store_url(config), read_secret(config.store_password), config.leader_lease),
        links,
        config.called,
        lease_seconds=config.leader_lease,
        worker_ttl_seconds=config.worker_ttl,
        own=hidden(config.model_dump(mode="json", by_alias=True)),
        level_of=links.level_of,
        settings_of=links.settings_of,
    )
    server = WebServer(master_app(master, AuditLog(config.audit_log), links.client), config, config.master_addr)
    master.advertise(config.advertise_addr or server.address)
    stop = Event()
    with stopped_by_signal(stop):
        server.start()
        try:
            master.start()
            console.print(f"master {config.called} serves at {server.scheme}://{master.addr}", highlight=False)
            console.print(f"page: {server.scheme}://{master.addr}/ui/", highlight=False)
            while not stop.wait(LOOK_SECONDS):
                server.check()
        finally:
            master.close()
            server.stop()
            links.close()


def _store_url(config: MasterConfig) -> str:
    if config.store:
        return config.store
    folder = Path(config.folder)
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError as error:
        raise ConfigError("CONFIG-029", Where(file=str(folder)), str(error)) from error
    return f"sqlite:///{folder.absolute() / 'master.db'}"
