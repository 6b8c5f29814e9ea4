"""The meaning of TLS failures by their text: OpenSSL's, the C driver's."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class TlsFault:
    """The cause of a TLS failure and the remedy, both as parts of a sentence."""

    fault: str
    mend: str


FILES = "a file of `security:` can't be used"
NO_TLS = "the server has no TLS"
RESET = "the connection was reset behind the handshake"
OTHER_NAME = "the certificate's common name is not in cert-allowed-cn"

_FAULTS: tuple[tuple[tuple[str, ...], TlsFault], ...] = (
    ((FILES,), TlsFault(FILES, "see the cause: each path has to be there on every machine, with the key of ssl-cert")),
    (
        ("cert-allowed-cn",),
        TlsFault(OTHER_NAME, "look whether that is your server; add its certificate's name if it is"),
    ),
    (
        (NO_TLS, "wrong version number", "does not support", "doesn't support"),
        TlsFault(
            NO_TLS, "give the server a certificate (ssl_cert, ssl_key), or take this section out to go in the clear"
        ),
    ),
    (
        ("insecure transport",),
        TlsFault("the server takes no connection without TLS", "give it the server's authority, `ssl-ca`"),
    ),
    (
        ("alert unknown ca", "alert bad certificate", "alert certificate", "certificate required", "alert unsupported"),
        TlsFault(
            "the server refuses the client certificate, or wants one",
            "give it `ssl-cert` and `ssl-key` that are not expired, of the authority that the server has as ssl_ca",
        ),
    ),
    (
        ("eof occurred in violation", RESET),
        TlsFault(
            "the server broke it off without a word, as one does that refuses the client certificate",
            "see its error log; `ssl-cert` and `ssl-key` have to be of the authority that it has as ssl_ca",
        ),
    ),
    (
        ("protocol version", "unsupported protocol", "no protocols available", "handshake failure", "no shared cipher"),
        TlsFault("the two sides have no version or cipher in common", "let the server have TLS 1.2 or 1.3"),
    ),
    (
        ("expired", "not yet valid"),
        TlsFault(
            "the server's certificate has expired or is not valid yet",
            "renew it on the server and reload it there (FLUSH SSL, ALTER INSTANCE RELOAD TLS); look at the clocks",
        ),
    ),
    (
        ("verify failed", "self-signed", "self signed", "issuer certificate", "certificate chain"),
        TlsFault(
            "the server's certificate is not of the authority in `ssl-ca`",
            "give the file of the authority that signed it; if it should be that one, look who answers there",
        ),
    ),
)
_OTHER = TlsFault("the handshake failed", "see the cause, and the server's error log")


def tls_fault(cause: str) -> TlsFault:
    """Return the meaning of a failure whose text is `cause`."""
    text = cause.lower()
    return next((fault for words, fault in _FAULTS if any(word.lower() in text for word in words)), _OTHER)
