"""The master's file: the example, DM's own TOML, flags over it, and what is wrong in it."""

from __future__ import annotations

from pathlib import Path

import pytest

from unshard.config.files import load_process
from unshard.config.master import MasterConfig
from unshard.errors import ConfigError

EXAMPLE = Path(__file__).parents[2] / "examples" / "cluster" / "master.yaml"
OF_DM = """
name = "master1"
master-addr = ":8261"
advertise-addr = "172.16.10.71:8261"
log-level = "info"
log-file = "dm-master.log"
peer-urls = "http://172.16.10.71:8291"
initial-cluster = "master1=http://172.16.10.71:8291"
rpc-timeout = "30s"
cert-allowed-cn = []
"""


def test_the_example_loads() -> None:
    config = load_process(MasterConfig, EXAMPLE, {})
    assert (config.called, config.leader_lease, config.worker_ttl) == ("master-1", 4.0, 8.0)
    assert config.notices == ()


def test_a_file_of_dm_is_read_and_its_etcd_told_of(tmp_path: Path) -> None:
    file = tmp_path / "dm-master.toml"
    file.write_text(OF_DM)
    config = load_process(MasterConfig, file, {"name": "other"})
    assert (config.called, config.master_addr, config.rpc_timeout) == ("other", ":8261", 30.0)
    assert [told.split()[0] for told in config.notices] == ["peer-urls", "initial-cluster"]


def test_without_a_file_it_has_a_name_and_listens_on_loopback() -> None:
    config = load_process(MasterConfig, "", {})
    assert config.called.startswith("master-")
    assert config.master_addr == "127.0.0.1:8261"


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("name: a\nmaster-adr: x\n", "line 2: master-adr: unknown key (did you mean `master-addr`?)"),
        ("leader-lease: 0s\n", "line 1: leader-lease"),
        ("store-password: {a: b}\n", "store-password: write a text"),
        ("master-addr: ':8261'\n", "master-addr :8261 is no address that others can call: set advertise-addr"),
        ("advertise-addr: 10.0.0.5\n", "advertise-addr takes HOST:PORT"),
    ],
)
def test_what_is_wrong_is_told_with_its_line(tmp_path: Path, text: str, told: str) -> None:
    file = tmp_path / "master.yaml"
    file.write_text(text)
    with pytest.raises(ConfigError) as caught:
        load_process(MasterConfig, file, {})
    assert told in caught.value.cause


def test_toml_that_is_none(tmp_path: Path) -> None:
    file = tmp_path / "master.toml"
    file.write_text("name = ")
    with pytest.raises(ConfigError) as caught:
        load_process(MasterConfig, file, {})
    assert caught.value.code == "CONFIG-003"
