"""What goes wrong where somebody calls a process: who it is, and how much is asked."""

from __future__ import annotations

from unshard.error_catalogue.entry import CatalogueEntry

ACCESS: dict[str, CatalogueEntry] = {
    "CLUSTER-050": CatalogueEntry(
        "{address} can be reached from other machines, but no access control is configured",
        "set token-file, or ssl-ca with ssl-cert and ssl-key, or listen on 127.0.0.1; "
        "docs/how-to/secure-a-cluster.md shows both",
    ),
    "CLUSTER-051": CatalogueEntry(
        "cannot listen on {address}", "write HOST:PORT of this machine with a free port; port 0 takes any"
    ),
    "CLUSTER-052": CatalogueEntry(
        "the TLS files cannot be used: {files}",
        "name readable PEM files: an authority, a certificate and the key that belongs to it",
    ),
    "CLUSTER-084": CatalogueEntry(
        "the HTTP server at {address} has stopped, so this process ends too",
        "see the cause and the log; start it again, as its systemd unit does by itself",
    ),
    "CLUSTER-053": CatalogueEntry(
        "the request carries no valid token",
        "send `Authorization: Bearer TOKEN` with a token of the token-file, or with ctl: --token-file FILE",
    ),
    "CLUSTER-095": CatalogueEntry(
        "{place} does not hold a token: a token is one word",
        "write there what the output of `unshard ctl token` has after `token:`, and nothing else",
    ),
    "CLUSTER-054": CatalogueEntry(
        "{caller} has the role {role}; this needs {needed}", "use a token with that role, or have the role changed"
    ),
    "CLUSTER-055": CatalogueEntry(
        "the body of the request is longer than {limit} bytes", "send less, or raise max-request-bytes"
    ),
    "CLUSTER-056": CatalogueEntry("the body of the request did not arrive within {seconds} s", "send it again", True),
    "CLUSTER-057": CatalogueEntry(
        "the request took longer than {seconds} s; it may still be carried out",
        "run `query-status` to see whether it was; `request-timeout` sets the limit",
    ),
    "CLUSTER-058": CatalogueEntry(
        "the audit log {file} cannot be written, so nothing is changed",
        "make room and make it writable for the user that unshard runs as",
    ),
    "CLUSTER-059": CatalogueEntry(
        "the request is not understood",
        "correct what the cause names; if that is correct, this process is older than the program that sent it: "
        "upgrade it",
    ),
    "CLUSTER-060": CatalogueEntry(
        "the request was sent by a web page of another site, and is refused", "call with unshard ctl or with a token"
    ),
}
