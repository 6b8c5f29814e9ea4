"""Errors before a start: config files, and the checks of both ends."""

from __future__ import annotations

from unshard.error_catalogue.entry import CatalogueEntry

CONFIG: dict[str, CatalogueEntry] = {
    "CONFIG-001": CatalogueEntry(
        "{count} problem(s) in the file",
        "correct every line named above; docs/reference/config.md lists each key with what it takes",
    ),
    "CONFIG-002": CatalogueEntry(
        "the file cannot be read", "check the path, its permissions, and that the text is UTF-8"
    ),
    "CONFIG-029": CatalogueEntry(
        "this process can't write its own files, such as its log, there",
        "make that folder writable for the user of this process, or name another: `--log` of `unshard run`, `log-file`"
        " and `data-dir` of a master or worker",
    ),
    "CONFIG-003": CatalogueEntry(
        "the file is not YAML",
        "correct the line named above; indent with spaces, and put values that begin with * & ! % @ ` in quotes",
    ),
    "CONFIG-004": CatalogueEntry(
        "the password or token `{reference}` cannot be read",
        "set that environment variable or make that file readable where `unshard` starts",
    ),
    "CONFIG-005": CatalogueEntry(
        "task {task} and the source files do not fit together: {count} problem(s)",
        "give one --source file for each entry of `mysql-instances`, and no other",
    ),
    "CONFIG-006": CatalogueEntry(
        "{name} matches more than one rule of `{section}`: {rules}",
        "narrow the patterns so that one rule of a level is left for it",
    ),
    "CONFIG-007": CatalogueEntry(
        "column mapping {rule}: the {part} name `{name}` is not `{prefix}` and a number",
        "correct that prefix in the rule's `arguments`, or narrow its patterns to names that end in a number",
    ),
    "CONFIG-008": CatalogueEntry(
        "column mapping {rule}: the {part} number {number} of `{name}` is greater than {limit}, the largest that its "
        "bits hold",
        "renumber it, or leave that part out with an empty argument",
    ),
    "CONFIG-009": CatalogueEntry(
        "column mapping {rule}: {column} = {value} is outside 0 … {limit}, so it cannot be merged without a clash",
        "map another column, or take the table out of the rule and give the target a key over source and id",
    ),
    "CONFIG-010": CatalogueEntry(
        "column mapping {rule}: column {column} {fault}",
        "name {wanted} that the table has, under `source-column` and `target-column`",
    ),
    "CONFIG-016": CatalogueEntry(
        "route {rule}: extract-{part} finds nothing in `{name}`: {regexp} does not match it",
        "correct the expression, or narrow the rule's patterns; a part that may be missing is written `order_?(.*)`",
    ),
    "CONFIG-017": CatalogueEntry(
        "the target table {target} does not take what route {rule} extracts: {faults}",
        "run on the target: {mend}; then start again",
    ),
    "CONFIG-018": CatalogueEntry(
        "column mapping {rule}: {column} = {value} becomes longer than the {limit} of the target's column {target}",
        "make that column longer in the target, then start again",
    ),
    "CONFIG-011": CatalogueEntry(
        "an option of the binlog data source is not valid", "correct the option that the cause names"
    ),
    "CONFIG-020": CatalogueEntry(
        "expression filter {rule}: `{part}` of `{expression}` can't be evaluated as the source does it",
        "write it as the cause says; docs/how-to/leave-out-rows.md lists the supported expressions",
    ),
    "CONFIG-021": CatalogueEntry(
        "expression filter {rule}: `{expression}` names a column that the table does not have",
        "correct the name in the rule; if a DDL has dropped the column, remove or rewrite the rule",
    ),
    "CONFIG-022": CatalogueEntry(
        "expression filter {rule} is for a table that block-allow-list excludes, so it can never match",
        "correct schema and table in the rule, or let the table through",
    ),
    "CONFIG-023": CatalogueEntry(
        "the key for encrypted passwords cannot be read: {path}",
        "name a readable file of 64 hex digits with secret-key-path, --secret-key-path or UNSHARD_SECRET_KEY_PATH: "
        "what is encrypted already needs the key that it was encrypted with; `openssl rand -hex 32` makes a first one",
    ),
    "CONFIG-024": CatalogueEntry(
        "an encrypted password cannot be decrypted",
        "use the key file that it was encrypted with, or encrypt it again with `unshard ctl encrypt`",
    ),
    "CONFIG-028": CatalogueEntry(
        "a password looks like one that DM has encrypted, but no key decrypts it",
        "name the key file that DM used with UNSHARD_SECRET_KEY_PATH, for a master or worker also with secret-key-path;"
        " or encrypt the password again with `unshard ctl encrypt`; give a plain one that only looks like that by "
        "env:NAME "
        "or file:PATH",
    ),
    "CONFIG-025": CatalogueEntry(
        "`{text}` is not a table's name",
        "write schema.table, each in backticks where it holds anything but letters, digits, _ and $",
    ),
    "CONFIG-026": CatalogueEntry(
        "source {source} is not in the task's mysql-instances",
        "name one of them with --source-id: {known}",
    ),
    "CONFIG-027": CatalogueEntry(
        "`{mode}` is not an SQL mode",
        "write names as SELECT @@sql_mode shows them on the source, with commas between them",
    ),
}


CHECK: dict[str, CatalogueEntry] = {
    "CHECK-001": CatalogueEntry(
        "{count} check(s) before the start failed; nothing was begun",
        "follow `What to do:` of each check, then start again; to skip a check that does not matter to you, write its"
        " name under `ignore-checking-items` (docs/reference/checks.md)",
    ),
}
