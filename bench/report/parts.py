"""The parts of a report, in order, and the process that runs one: `python -m bench.report.parts NAME SIZE FILE`."""

from __future__ import annotations

import json
import sys
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import Any

from bench.report.size import SIZES, Size
from unshard.testing.programs import MissingProgramError

LEFT_OUT = 3
"""The exit code of a part that can't run here. The file then has the reason."""


class NotHereError(RuntimeError):
    """The part can't run on this machine. The text says why."""


@dataclass(frozen=True, slots=True)
class Part:
    """One part: its name in JSON, its heading, `module:function`, and the minutes after which it is stopped."""

    name: str
    title: str
    function: str
    minutes: int

    def run(self, size: Size) -> Any:
        module, _, function = self.function.partition(":")
        return getattr(import_module(f"bench.report.{module}"), function)(size)


PARTS = (
    Part("decode", "Decoding a binlog", "benches:run_decode", 10),
    Part("sync", "Applying a backlog", "benches:run_sync", 15),
    Part("load", "Copying a table", "benches:run_load", 10),
    Part("load_shapes", "Copying tables of several shapes", "benches:run_load_shapes", 15),
    Part("latency", "From commit to visible", "benches:run_latency", 6),
    Part("memory", "Memory while a backlog is applied", "benches:run_memory", 10),
    Part("ddl", "DDL in the log", "benches:run_ddl", 6),
    Part("many_tables", "Copying many tables", "benches:run_many_tables", 6),
    Part("faults", "Faults in each phase", "faults:run", 20),
    Part("types", "Types and character sets", "type_matrix:run", 15),
)


def main() -> None:
    name, size, into = sys.argv[1:]
    (part,) = (part for part in PARTS if part.name == name)
    try:
        found = part.run(SIZES[size])
    except (MissingProgramError, NotHereError) as missing:
        Path(into).write_text(json.dumps(str(missing)))
        sys.exit(LEFT_OUT)
    Path(into).write_text(json.dumps(found))


if __name__ == "__main__":
    main()
