"""What goes wrong where somebody calls a process: who it is, and how much is asked."""

from __future__ import annotations

from unshard.error_catalogue.entry import Entry

ACCESS: dict[str, Entry] = {
    "CLUSTER-050": Entry(
        "{address} can be reached from other machines, and nothing says who may call",
        "set token-file, or ssl-ca with ssl-cert and ssl-key, or listen on 127.0.0.1; "
        "docs/how-to/secure-a-cluster.md shows both",
    ),
    "CLUSTER-051": Entry(
        "cannot listen on {address}", "write HOST:PORT of this machine with a free port; port 0 takes any"
    ),
    "CLUSTER-052": Entry(
        "the TLS files cannot be used: {files}",
        "name readable PEM files: an authority, a certificate and the key that belongs to it",
    ),
    "CLUSTER-084": Entry(
        "the server at {address} has ended, so this process ends too",
        "see the cause and the log; start it again, as its systemd unit does by itself",
    ),
    "CLUSTER-053": Entry(
        "the caller is not known",
        "send `Authorization: Bearer TOKEN` with a token of the token-file, or with ctl: --token-file FILE",
    ),
    "CLUSTER-095": Entry(
        "what {place} holds is no token: a token is one word",
        "write what stands behind `token:` in the output of `unshard ctl token` there, and nothing else",
    ),
    "CLUSTER-054": Entry(
        "{caller} has the role {role}; this needs {needed}", "use a token with that role, or have the role changed"
    ),
    "CLUSTER-055": Entry(
        "the body of the request is longer than {limit} bytes", "send less, or raise max-request-bytes"
    ),
    "CLUSTER-056": Entry("the body of the request did not arrive within {seconds} s", "send it again", True),
    "CLUSTER-057": Entry(
        "the request took longer than {seconds} s; it may still be carried out",
        "look with query-status what became of it; request-timeout is the limit",
    ),
    "CLUSTER-058": Entry(
        "the audit log {file} cannot be written, so nothing is changed",
        "make room and make it writable for the user that unshard runs as",
    ),
    "CLUSTER-059": Entry(
        "the request is not understood",
        "correct what the cause names; if it is right, this process is of an earlier version than who asks: upgrade it",
    ),
    "CLUSTER-060": Entry(
        "a request that a web page of another site has sent is refused", "call with unshard ctl or with a token"
    ),
}
