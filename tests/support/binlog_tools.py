"""What `mariadb-binlog` or `mysqlbinlog` say of a file, reduced to events and rows."""

from __future__ import annotations

import re
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

ANNOTATE_ROWS = 160
ARGUMENTS = ["--base64-output=decode-rows", "-vv", "--hexdump"]

# The line of a hexdump that has an event's header; MariaDB's has bars between the fields.
_HEADER = re.compile(
    r"^#\s+(?P<at>[0-9a-f]+)[ |]+(?:[0-9a-f]{2} ){4} *\|?(?P<code>[0-9a-f]{2})  *\|?(?:[0-9a-f]{2} ){4} *\|?"
    r"(?P<size>(?:[0-9a-f]{2} ){4}) *\|?(?:[0-9a-f]{2} ){4} *\|?[0-9a-f]{2} [0-9a-f]{2}\s*$"
)
_PLACE = re.compile(r"^# at (\d+)$")
_CHANGE = re.compile(r"^### (INSERT INTO|UPDATE|DELETE FROM) `(.*)`\.`(.*)`$")
_VALUE = re.compile(r"^###   @(\d+)=(.*?)(?: /\* .* \*/)?$")
_KINDS = {"INSERT INTO": "insert", "UPDATE": "update", "DELETE FROM": "delete"}


@dataclass(slots=True)
class Told:
    """`events` are [position, code, size]; `inner` the codes within compressed transactions, each after its
    position. `rows` are [table, kind, before, after], the images by column number as the tool prints values."""

    events: list[list[int]] = field(default_factory=list)
    inner: list[list[int]] = field(default_factory=list)
    rows: list[list[Any]] = field(default_factory=list)


def ask(command: list[str], path: Path) -> tuple[Told, bool]:
    """What the tool tells, and whether it found the file in order."""
    done = subprocess.run([*command, *ARGUMENTS, str(path)], capture_output=True, check=False, timeout=120)
    return reduce(done.stdout.decode("utf-8", "surrogateescape")), done.returncode == 0


def reduce(output: str) -> Told:
    told = Told()
    image: dict[str, str] = {}
    payload: int | None = None
    announced: list[int] = []
    for line in output.splitlines():
        if match := _HEADER.match(line):
            size = int.from_bytes(bytes.fromhex(match["size"]), "little")
            at, code = int(match["at"], 16), int(match["code"], 16)
            if code == ANNOTATE_ROWS:  # dumped with the event after it, under that one's place
                at = announced[-2]
            if payload is None:
                told.events.append([at, code, size])
            else:
                told.inner.append([payload, code])
        elif match := _PLACE.match(line):
            announced.append(int(match[1]))
        elif line.startswith("# Start of compressed events"):
            payload = told.events[-1][0]
        elif line.startswith("# End of compressed events"):
            payload = None
        elif match := _CHANGE.match(line):
            told.rows.append([f"{match[2]}.{match[3]}", _KINDS[match[1]], None, None])
        elif line in ("### WHERE", "### SET"):
            image = {}
            told.rows[-1][2 if line == "### WHERE" else 3] = image
        elif match := _VALUE.match(line):
            image[match[1]] = match[2]
    return told
