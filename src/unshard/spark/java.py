"""Whether there is a Java to start Spark with."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from unshard.errors import EngineError
from unshard.spark.address import is_remote


def check_java(master: str) -> None:
    """Raises EngineError ENGINE-012 where Spark's driver is to run here and there is no Java. Starts nothing."""
    home = os.environ.get("JAVA_HOME")
    if is_remote(master):
        return
    if home:
        if shutil.which(str(Path(home) / "bin" / "java")) is None:
            raise EngineError("ENGINE-012", cause=f"JAVA_HOME is {home}, and there is no program bin/java in it")
    elif shutil.which("java") is None:
        raise EngineError("ENGINE-012", cause="no folder of PATH has a program java, and JAVA_HOME is not set")
