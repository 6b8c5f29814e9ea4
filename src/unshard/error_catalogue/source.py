"""Errors of the source's server."""

from __future__ import annotations

from unshard.error_catalogue.entry import CatalogueEntry

SOURCE: dict[str, CatalogueEntry] = {
    "SOURCE-001": CatalogueEntry(
        "cannot connect to the source {host}:{port} as {user}",
        "check that the server is up, and host, port, user and password under `from:` in the source file",
        retryable=True,
    ),
    "SOURCE-002": CatalogueEntry(
        "the source {host}:{port} refuses user {user}",
        "correct user and password under `from:` in the source file, or the account's grants; where the account has "
        "REQUIRE SSL or X509, or the server require_secure_transport, write `security:` there",
    ),
    "SOURCE-003": CatalogueEntry(
        "the connection to the source was lost", "check the source's error log", retryable=True
    ),
    "SOURCE-004": CatalogueEntry(
        "the source refused a statement: {statement}", "correct what the server reports, then start again"
    ),
    "SOURCE-005": CatalogueEntry("the source is busy", "check the source's load, then start again", retryable=True),
    "SOURCE-008": CatalogueEntry(
        "no TLS connection to the source {host}:{port}: {fault}",
        "under `security:` of `from:` in the source file: {mend}",
    ),
    "SOURCE-020": CatalogueEntry(
        "the source writes no binlog, so a dump has no position to go on from",
        "start the source with `log_bin` and `binlog_format=ROW`",
    ),
    "SOURCE-030": CatalogueEntry(
        "the source writes no binlog", "set `log_bin` in the source's configuration and restart it"
    ),
    "SOURCE-031": CatalogueEntry(
        "the source's binlog_format is {format}", "SET GLOBAL binlog_format = 'ROW', reconnect clients"
    ),
    "SOURCE-033": CatalogueEntry(
        "the source's user {user} lacks: {missing}", "GRANT {missing} ON *.* to this user (SELECT: the tables suffice)"
    ),
}
