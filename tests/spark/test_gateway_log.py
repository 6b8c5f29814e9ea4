"""The gateway to the JVM does not print on the user's terminal."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

PROGRAM = """
import logging, sys
from pathlib import Path
from unshard.spark.session import gateway_log_to
with gateway_log_to(Path(sys.argv[1])):
    for exception in (logging.exception, logging.getLogger("py4j.clientserver").exception):
        try:
            raise ConnectionResetError("the JVM is gone")
        except ConnectionResetError:
            exception("Exception while sending command.")
assert logging.getLogger().handlers == []
"""


def test_what_py4j_logs_goes_to_the_file(tmp_path: Path) -> None:
    path = tmp_path / "spark.log"
    run = subprocess.run([sys.executable, "-c", PROGRAM, str(path)], capture_output=True, text=True, check=True)
    assert (run.stdout, run.stderr) == ("", "")
    assert path.read_text(encoding="utf-8").count("ConnectionResetError: the JVM is gone") == 2
