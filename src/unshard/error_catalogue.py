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


CONFIG: dict[str, Entry] = {
    "CONFIG-001": Entry(
        "{count} problem(s) in the file",
        "correct every line named above; docs/reference/config.md lists each key with what it takes",
    ),
    "CONFIG-002": Entry("the file cannot be read", "check the path, its permissions, and that the text is UTF-8"),
    "CONFIG-003": Entry("the file is not YAML", "correct the line named above; indent with spaces, never with tabs"),
    "CONFIG-004": Entry(
        "the password `{reference}` cannot be read",
        "set that environment variable or make that file readable where `unshard` starts",
    ),
    "CONFIG-005": Entry(
        "task {task} and the source files do not fit together: {count} problem(s)",
        "give one --source file for each entry of `mysql-instances`, and no other",
    ),
    "CONFIG-006": Entry(
        "{name} matches more than one rule of `{section}`: {rules}",
        "narrow the patterns so that one rule of a level is left for it",
    ),
    "CONFIG-007": Entry(
        "column mapping {rule}: the {part} name `{name}` is not `{prefix}` and a number",
        "correct that prefix in the rule's `arguments`, or narrow its patterns to names that end in a number",
    ),
    "CONFIG-008": Entry(
        "column mapping {rule}: the {part} number {number} of `{name}` is over {limit}, which is all its bits hold",
        "renumber it, or leave that part out with an empty argument",
    ),
    "CONFIG-009": Entry(
        "column mapping {rule}: {column} = {value} is outside 0 … {limit}, so it cannot be merged without a clash",
        "map another column, or take the table out of the rule and give the target a key over source and id",
    ),
    "CONFIG-010": Entry(
        "column mapping {rule}: column {column} {fault}",
        "name an integer column that the table has, under `source-column` and `target-column`",
    ),
}

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

SYNC: dict[str, Entry] = {
    "SYNC-001": Entry(
        "another process has taken this source over; this one stopped before writing anything more",
        "make sure that one task runs once; the process that started last owns the source",
    ),
    "SYNC-002": Entry(
        "the batch's sums don't agree: a change is unaccounted for, so the batch was not closed",
        "keep the relay log, report this as a bug with the log of this run; a new start repeats the same batch",
    ),
    "SYNC-003": Entry(
        "a row of the source meets a row with the same key in the target",
        "if shards share key values, add a column mapping (`partition id`) or route them apart;"
        " if something else writes to the target, remove its row; then start again",
    ),
    "SYNC-004": Entry(
        "the target refuses a row", "mend what the server names (type, length, constraint), then start again"
    ),
    "SYNC-005": Entry(
        "the target failed {attempts} times in a row and the batch could not be applied",
        "look at the target's load and error log; start again when it is well: nothing is lost or applied twice",
        retryable=True,
    ),
    "SYNC-006": Entry(
        "the target table does not exist",
        "create it, or run the task in mode `all` so that it is created from the source; then start again",
    ),
    "SYNC-007": Entry(
        "the target table {target} has not the shape of the source table",
        "make the target's columns fit (see why), then start again",
    ),
    "SYNC-008": Entry(
        "the open batch was planned with other structures or rules than now",
        "put routes, column mappings and the target table back as they were when the task stopped, start again",
    ),
    "SYNC-009": Entry(
        "the structure of the table is not known at this place of the binlog",
        "start the task in mode `all`, or create the target table so that its structure can be taken over",
    ),
    "SYNC-010": Entry("the target table is gone", "create it again with its rows, or remove the task's checkpoint"),
    "SYNC-011": Entry(
        "DDL on a sharded table (several source tables merge into {target}): not supported yet",
        "apply the change by hand on the target and on all shards while the task is stopped at this place",
    ),
    "SYNC-012": Entry(
        "the task has no place to start from: mode `incremental` needs a checkpoint or `meta` of the instance",
        "give binlog-name and binlog-pos (or binlog-gtid) under `meta` of this mysql-instance",
    ),
}

DDL: dict[str, Entry] = {}

ENGINE: dict[str, Entry] = {
    "ENGINE-001": Entry(
        "Spark can't be started on {master}",
        "check that Java 17 is installed (package openjdk-17-jre-headless) and see {log}",
    ),
    "ENGINE-002": Entry(
        "a Spark job failed ({task})", "see the Spark log beside the task's data; start again", retryable=True
    ),
}

CATALOGUE: dict[str, Entry] = CONFIG | SOURCE | TARGET | BINLOG | RELAY | DUMP | LOAD | SYNC | DDL | ENGINE
