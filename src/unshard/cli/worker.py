"""`unshard worker`: one worker until a signal stops it."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from threading import Event, Thread
from typing import Any

from rich.console import Console

from unshard.cli.process import stopped_by_signal
from unshard.config.encryption import use_key
from unshard.config.files import load_process
from unshard.config.redact import hidden
from unshard.config.worker import WorkerConfig
from unshard.log import configure
from unshard.web.audit import AuditLog
from unshard.web.links import HttpMasterLink
from unshard.web.server import WebServer
from unshard.web.worker_app import worker_app
from unshard.worker.agent import Agent
from unshard.worker.engine import Engine
from unshard.worker.metrics import host_samples
from unshard.worker.source_worker import Means, builder

LOOK_SECONDS = 0.5


def run_worker(file: Path | None, given: Mapping[str, Any], console: Console) -> None:
    """Serve until SIGINT or SIGTERM; batches under way are ended then.

    Raises ConfigError, and ClusterError where it can't begin.
    """
    config = load_process(WorkerConfig, file or "", given)
    for notice in config.notices:
        console.print(f"note: {notice}", markup=False, highlight=False, soft_wrap=True)
    configure(config.log_settings)
    use_key(config.secret_key_path)
    link = HttpMasterLink(config.masters, config)
    engine = Engine(Path(config.spark_log).absolute())
    means = Means(config.name, builder(engine.lazy), config.wait_time_on_stop, config.relay_dir)
    agent = Agent("", link, means)
    own = hidden(config.model_dump(mode="json", by_alias=True))
    app = worker_app(agent, AuditLog(config.audit_log), lambda: host_samples(agent.name, agent.host), own)
    server = WebServer(app, config, config.worker_addr)
    agent.advertise(config.advertise_addr or server.address)
    stop = Event()
    with stopped_by_signal(stop):
        server.start()
        serving = Thread(target=agent.run, args=(stop,), name="agent")
        serving.start()
        try:
            console.print(f"worker {agent.name} serves at {server.scheme}://{agent.addr}", highlight=False)
            if config.spark is not None:
                engine.begin(config.spark)
            while serving.is_alive() and not stop.wait(LOOK_SECONDS):
                server.check()
        finally:
            stop.set()
            serving.join()
            server.stop()
            link.close()
            engine.close()
