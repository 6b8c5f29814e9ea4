"""What a master's URL says: where it is, what of it may be shown, whether anything listens there."""

from __future__ import annotations

import os
import socket

import pytest

from unshard.errors import EngineError
from unshard.spark.address import check_reachable, is_loopback, local_slots, shown, without_secrets


@pytest.mark.parametrize(
    ("master", "slots"),
    [
        ("local", 1),
        ("local[4]", 4),
        ("local[4,2]", 4),
        ("local[*]", os.cpu_count()),
        ("spark://h:7077", 0),
        ("yarn", 0),
        ("k8s://https://h:6443", 0),
        ("sc://h", 0),
        ("local-cluster[2,1,512]", 0),
    ],
)
def test_slots_of_a_local_master(master: str, slots: int) -> None:
    assert local_slots(master) == slots


@pytest.mark.parametrize(
    ("master", "loopback"),
    [
        ("local[2]", True),
        ("spark://127.0.0.1:7077", True),
        ("spark://localhost:7077,10.0.0.1:7077", False),
        ("spark://10.0.0.1:7077", False),
        ("yarn", False),
        ("k8s://https://127.0.0.1:6443", False),
    ],
)
def test_what_is_on_this_machine(master: str, loopback: bool) -> None:
    assert is_loopback(master) == loopback


def test_a_token_is_not_shown() -> None:
    url = "sc://h:443/;use_ssl=true;token=abc123"
    assert shown(url) == "sc://h:443"
    conf = {"spark.authenticate.secret": "s3", "spark.executor.memory": "512m"}
    told = without_secrets("no: token=abc123 s3 512m", url, conf)
    assert told == "no: token=****** ****** 512m"


def test_where_nothing_listens() -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
        check_reachable(f"spark://127.0.0.1:1,127.0.0.1:{port}")
        check_reachable(f"sc://127.0.0.1:{port}/;token=abc")
    with socket.socket() as kept:  # nobody else gets the port meanwhile
        kept.bind(("127.0.0.1", 0))
        port = kept.getsockname()[1]
        for url in (f"spark://127.0.0.1:{port}", f"sc://127.0.0.1:{port}/;token=abc"):
            with pytest.raises(EngineError, match="ENGINE-004") as caught:
                check_reachable(url)
            assert f"127.0.0.1:{port}: " in str(caught.value)
            assert "abc" not in str(caught.value)
    check_reachable("yarn")
