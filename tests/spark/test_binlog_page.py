"""The how-to page's programs run, and print what the page shows."""

from __future__ import annotations

import contextlib
import io
import re
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from unshard.testing.mariadb_server import MariadbServer

pytestmark = [pytest.mark.server, pytest.mark.spark]

PAGE = Path(__file__).parents[2] / "docs" / "how-to" / "read-a-binlog-with-spark.md"
FENCE = re.compile(r"^```(\w+)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


@pytest.mark.docs
def test_the_page_shows_what_its_programs_print(spark: SparkSession, tmp_path: Path) -> None:
    blocks = FENCE.findall(PAGE.read_text(encoding="utf-8"))
    names = {"spark": spark}
    printed: list[str] = []
    with MariadbServer({"binlog_row_metadata": "FULL"}) as server:
        server.run("CREATE DATABASE shop")
        for kind, text in blocks:
            if kind == "sql":
                server.run(*filter(str.strip, text.split(";")))
            elif kind == "python":
                program = text.replace("/tmp/goods", f"{tmp_path}/goods").replace("/var/lib/mysql", str(server.data))
                with contextlib.redirect_stdout(io.StringIO()) as out:
                    exec(program, names)
                printed.append(out.getvalue().strip())
    assert [text for text in printed if text] == [text.strip() for kind, text in blocks if kind == "text"]
    assert len(spark.read.json(str(tmp_path / "goods" / "changes")).collect()) == 5
