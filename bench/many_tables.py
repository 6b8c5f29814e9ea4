"""The first copy of many small tables: the cost of a table besides its rows."""

from __future__ import annotations

import tempfile
import time
from pathlib import Path
from typing import Any

from bench.ends import MARIADB, Target
from bench.stage import BIG, engine, subtask
from unshard.testing.mariadb_server import MariadbServer

_SCHEMA = "bench"
_TABLE = (
    "CREATE TABLE {name} (id INT NOT NULL PRIMARY KEY, name VARCHAR(40) NOT NULL, made DATETIME NOT NULL, KEY (name))"
)


def run(target: Target = MARIADB, tables: int = 1000) -> dict[str, Any]:
    """Return `{"dump_s", "load_s", "ms_a_table"}` for that many tables with ten rows each."""
    with (
        tempfile.TemporaryDirectory(prefix="unshard-bench-") as name,
        engine(Path(name)) as spark,
        MariadbServer(BIG) as source,
        target.server(BIG) as reached,
    ):
        names = [f"table_{number:05}" for number in range(tables)]
        values = ", ".join(f"({number}, 'name {number}', '2020-01-01')" for number in range(10))
        source.run(f"CREATE DATABASE {_SCHEMA}", f"USE {_SCHEMA}", *(_TABLE.format(name=one) for one in names))
        source.run(f"USE {_SCHEMA}", *(f"INSERT INTO {one} VALUES {values}" for one in names))
        work = subtask(spark, source, reached, Path(name), mode="full")
        begun = time.perf_counter()
        work.dump.run()  # type: ignore[union-attr]
        middle = time.perf_counter()
        work.load.run()  # type: ignore[union-attr]
        dump, load = middle - begun, time.perf_counter() - middle
        ((rows,),) = reached.server.query(f"SELECT COUNT(*) FROM {_SCHEMA}.{names[-1]}")
        if rows != 10:
            raise AssertionError(f"the last table has {rows} rows")
    return {"dump_s": round(dump, 2), "load_s": round(load, 2), "ms_a_table": round(1000 * (dump + load) / tables, 1)}
