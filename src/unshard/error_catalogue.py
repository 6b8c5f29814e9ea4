"""Every error code with its text, its remedy and whether a retry may help.

One table, in the order of the data flow; `docs/reference/errors.md` is generated from it. Texts are
`str.format` templates over the `values` of an error.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Entry:
    """One row of the catalogue. `retryable`: the same call may succeed later with nothing changed."""

    message: str
    hint: str
    retryable: bool = False


CONFIG: dict[str, Entry] = {}

SOURCE: dict[str, Entry] = {
    "SOURCE-001": Entry(
        "cannot connect to the source {host}:{port} as {user}",
        "check that the server is up, and host, port, user and password under `from:` in the source file",
        retryable=True,
    ),
    "SOURCE-002": Entry(
        "the source {host}:{port} refuses user {user}",
        "correct user and password under `from:` in the source file, or the account's grants",
    ),
    "SOURCE-003": Entry("the connection to the source was lost", "look at the source's error log", retryable=True),
    "SOURCE-004": Entry("the source refused a statement: {statement}", "mend what the server names, start again"),
}

TARGET: dict[str, Entry] = {
    "TARGET-001": Entry(
        "cannot connect to the target {host}:{port} as {user}",
        "check that the server is up, and host, port, user and password under `target-database:` in the task file",
        retryable=True,
    ),
    "TARGET-002": Entry(
        "the target {host}:{port} refuses user {user}",
        "correct user and password under `target-database:` in the task file, or the account's grants",
    ),
    "TARGET-003": Entry("the connection to the target was lost", "look at the target's error log", retryable=True),
    "TARGET-004": Entry("the target refused a statement: {statement}", "mend what the server names, start again"),
}

BINLOG: dict[str, Entry] = {}

RELAY: dict[str, Entry] = {}

DUMP: dict[str, Entry] = {}

LOAD: dict[str, Entry] = {}

SYNC: dict[str, Entry] = {}

DDL: dict[str, Entry] = {}

ENGINE: dict[str, Entry] = {}

CATALOGUE: dict[str, Entry] = CONFIG | SOURCE | TARGET | BINLOG | RELAY | DUMP | LOAD | SYNC | DDL | ENGINE
