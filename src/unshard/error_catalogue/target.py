"""Errors of the target's server."""

from __future__ import annotations

from unshard.error_catalogue.entry import CatalogueEntry

TARGET: dict[str, CatalogueEntry] = {
    "TARGET-001": CatalogueEntry(
        "cannot connect to the target {host}:{port} as {user}",
        "check that the server is up, and host, port, user and password under `target-database:` in the task file",
        retryable=True,
    ),
    "TARGET-002": CatalogueEntry(
        "the target {host}:{port} refuses user {user}",
        "correct user and password under `target-database:` in the task file, or the account's grants; where the "
        "account has REQUIRE SSL or X509, or the server require_secure_transport, write `security:` there",
    ),
    "TARGET-003": CatalogueEntry(
        "the connection to the target was lost", "check the target's error log", retryable=True
    ),
    "TARGET-004": CatalogueEntry(
        "the target refused a statement: {statement}", "correct what the server reports, then start again"
    ),
    "TARGET-005": CatalogueEntry(
        "the target is busy and aborted a transaction", "check the target's load, then start again", retryable=True
    ),
    "TARGET-006": CatalogueEntry(
        "the target is read-only",
        "make it writable, or point `target-database:` at the server that is; nothing was written",
        retryable=True,
    ),
    "TARGET-007": CatalogueEntry(
        "a transaction or statement is larger than the target allows",
        "raise the limit that the server names, such as `max_allowed_packet` or `max_binlog_cache_size`",
    ),
    "TARGET-009": CatalogueEntry(
        "the target is short of memory and aborted a transaction",
        "the task tries again, with smaller transactions too; give TiDB more memory, raise `tidb_server_memory_limit`,"
        " or lower `batch` and `worker-count` under `syncers:` in the task file; nothing is lost",
        retryable=True,
    ),
    "TARGET-008": CatalogueEntry(
        "no TLS connection to the target {host}:{port}: {fault}",
        "under `security:` of `target-database:` in the task file: {mend}",
    ),
}
