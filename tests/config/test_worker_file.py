"""The worker's file: the example, DM's own TOML, and what is wrong in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from unshard.config.files import load_process
from unshard.config.worker import WorkerConfig
from unshard.errors import ConfigError
from unshard.log import LogSettings

EXAMPLE = Path(__file__).parents[2] / "examples" / "cluster" / "worker.yaml"
OF_DM = """
name = "worker1"
worker-addr = ":8262"
advertise-addr = "172.16.10.72:8262"
join = "http://172.16.10.71:8261,172.16.10.73:8261"
log-level = "warning"
log-file = "dm-worker.log"
keepalive-ttl = 90
relay-keepalive-ttl = 3600
relay-dir = "/relay"
"""


def test_the_example_loads_and_shows_every_key_that_acts() -> None:
    config = load_process(WorkerConfig, EXAMPLE, {})
    assert (config.name, config.masters, config.wait_time_on_stop) == ("worker-1", ("127.0.0.1:8261",), 10.0)
    assert config.notices == ()
    assert config.log_settings == LogSettings(Path("worker.log"), "info", "json")
    shown = {line.partition(":")[0] for line in EXAMPLE.read_text().splitlines() if not line.startswith("#")}
    keys = {info.alias or name for name, info in WorkerConfig.model_fields.items()}
    assert keys - shown == {"keepalive-ttl", "relay-keepalive-ttl", "log-rotate"}


def test_a_file_of_dm_is_read_and_what_has_no_effect_is_told(tmp_path: Path) -> None:
    file = tmp_path / "dm-worker.toml"
    file.write_text(OF_DM)
    config = load_process(WorkerConfig, file, {"redact-info-log": True})
    assert config.masters == ("172.16.10.71:8261", "172.16.10.73:8261")
    assert config.log_settings == LogSettings(Path("dm-worker.log"), "warn", "text", redact=True)
    assert {told.split()[0] for told in config.notices} == {"keepalive-ttl", "relay-keepalive-ttl"}


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("name: a\n", "join"),
        ("join: here\n", "HOST:PORT"),
        ("join: h:1\nrelay: x\n", "relay-dir"),
        ("join: h:1\nworker-addr: 0.0.0.0:8262\n", "set advertise-addr"),
        ("join: h:1\nadvertise-addr: '[::]:8262'\n", "set advertise-addr"),
    ],
)
def test_a_wrong_file_is_answered_with_its_line(text: str, told: str, tmp_path: Path) -> None:
    file = tmp_path / "worker.yaml"
    file.write_text(text)
    with pytest.raises(ConfigError, match=told):
        load_process(WorkerConfig, file, {})
