"""The gateway to the JVM does not print on the user's terminal."""

from __future__ import annotations

import logging
from pathlib import Path

import pytest

from unshard.spark.session import gateway_log_to


def test_what_py4j_logs_goes_to_the_file(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "spark.log"
    gateway = logging.getLogger("py4j.clientserver")
    before = list(logging.getLogger("py4j").handlers)
    with gateway_log_to(path):
        try:
            raise ConnectionResetError("the JVM is gone")
        except ConnectionResetError:
            gateway.exception("Exception while sending command.")
    assert "the JVM is gone" in path.read_text(encoding="utf-8")
    assert capfd.readouterr() == ("", "")
    assert logging.getLogger("py4j").handlers == before
